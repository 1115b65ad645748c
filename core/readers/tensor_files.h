// SPDX-License-Identifier: GPL-3.0-or-later
//
// Files with tensors: .npy, .npz, .safetensors and torch.save, recognized by content.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/readers/mapped_file.h"
#include "core/readers/pickle.h"
#include "core/readers/read_control.h"

namespace dblame
{

struct NamedTensor {
    std::string name; // empty for .npy
    at::Tensor tensor;
};

struct TensorFile {
    enum class Kind { Npy, Named, Pickled };
    Kind kind = Kind::Named;
    std::vector<NamedTensor> arrays;        // Npy: one; Named (.npz, .safetensors): all, in file order
    PickleDocument pickled;                 // Pickled
    std::shared_ptr<const MappedFile> file; // large tensors lie in its mapping
};

// Throws ReadError: damaged, object or structured arrays, another kind of file.
[[nodiscard]] TensorFile readTensorFile(const std::string &path, ReadControl &control);

// One .npy: versions 1 to 3, C or Fortran order, either byte order.
[[nodiscard]] at::Tensor readNpy(const Bytes &bytes);
// Tensors in the order of their data.
[[nodiscard]] std::vector<NamedTensor> readSafeTensors(const Bytes &bytes);

} // namespace dblame
