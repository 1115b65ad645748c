// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the quantizers do to a float graph before they place observers: fold batch norms, lift scalars; and the form
// that coreai-opt gives to a convolution with its norm. Structure only; tensors that have to be computed are listed.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/graph_edit.h"
#include "core/placement.h"

namespace dblame
{

// A stored tensor that must be computed from those of the original. Ids are of the edit's working copy.
struct DerivedTensor {
    enum class Kind {
        FoldedWeight, // W * (gamma * rsqrt(var + eps)) along `axis`
        FoldedBias,   // (b - mean) * rsqrt(var + eps) * gamma + beta
        Number,       // `number`, as 0-dimensional float32
    };
    Kind kind = Kind::Number;
    ValueId value;                       // the graph input that holds it
    ValueId source;                      // W or b as they were; invalid: no bias
    ValueId gamma, beta, mean, variance; // of the norm; gamma and beta may be absent
    double eps = 0;
    int axis = 0; // of the output channels in W
    double number = 0;
};

struct RewriteNotes {
    std::vector<DefectNote> defects;
    std::vector<std::string> warnings;
};

// torchao's fold: every batch norm in evaluation mode whose input is a convolution, a transposed one, or a linear on
// at most two dimensions. The norm goes; weight and bias keep their inputs (a missing bias becomes the parameter
// "<weight>_bias"). A weight that several convolutions read is scaled once. The convolution is folded even if others
// read it too, which changes what they see: a known defect, which `corrected` leaves out by not folding there.
[[nodiscard]] std::vector<DerivedTensor> foldNorms(GraphEdit &edit, bool corrected, RewriteNotes &notes);

// Numbers added to or multiplied with a tensor become 0-dimensional buffers "_tensor_constant_<k>".
[[nodiscard]] std::vector<DerivedTensor> liftScalars(GraphEdit &edit);

// W·sf -> convolution -> /sf (-> + bias) -> batch norm, sf = gamma / sqrt(var + eps), for each convolution that only
// its batch norm reads. The peers write eps = 1e-5 in both places whatever the model had; `corrected` keeps the
// model's. Returns, per convolution, the value W·sf.
[[nodiscard]] std::unordered_map<NodeId, ValueId> rewriteConvNorms(GraphEdit &edit, bool corrected,
                                                                   RewriteNotes &notes);

} // namespace dblame
