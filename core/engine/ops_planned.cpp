// SPDX-License-Identifier: GPL-3.0-or-later
//
// The operator that stands for a planned site in a graph. A comparison computes its result by the site's kernel
// (PlannedSites), so nobody calls it; it has a schema so that the graph around it compiles.
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

namespace
{

at::Tensor fakeQuantize(const at::Tensor &)
{
    TORCH_CHECK(false, "a planned quantizer runs only in the model that its recipe made");
}

} // namespace

TORCH_LIBRARY_FRAGMENT(dblame, m)
{
    m.def("fake_quantize(Tensor input) -> Tensor", &fakeQuantize);
}
