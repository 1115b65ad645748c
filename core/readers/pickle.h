// SPDX-License-Identifier: GPL-3.0-or-later
//
// A pickle reader that builds tensors and plain containers and nothing else. No class of the file is looked
// up, called or imported: whatever is not on the list below is refused with its name (NeedsCode).
#pragma once

#include <complex>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/readers/read_control.h"
#include "core/readers/tensor_storage.h"

namespace dblame
{

struct PickleValue {
    enum class Kind {
        None,
        Bool,
        Int,
        Float,
        Complex,
        Text,
        Bytes,
        Tensor,
        Tuple,
        List,
        Dict,
        Device,
        DType,
        // Only while reading:
        Mark,
        Global,
        Storage,
    };
    Kind kind = Kind::None;
    std::int64_t integer = 0;                        // Bool, Int; Storage: index
    double number = 0;                               // Float
    std::complex<double> complex;                    // Complex
    std::string text;                                // Text, Bytes, Device; Global: "module.name"
    at::ScalarType type = at::ScalarType::Undefined; // DType, Storage
    at::Tensor tensor;                               // Tensor
    std::vector<PickleValue> *items = nullptr;       // Tuple, List; Dict: key, value, key, value...
                                                     // Owned by the document; hostile files may link them in circles.

    [[nodiscard]] bool isSequence() const { return kind == Kind::Tuple || kind == Kind::List; }
};

// A pickled object with everything it refers to.
class PickleDocument
{
public:
    PickleDocument() = default;
    PickleDocument(PickleDocument &&) = default;
    PickleDocument &operator=(PickleDocument &&) = default;
    [[nodiscard]] const PickleValue &root() const { return m_root; }

private:
    friend class Unpickler;
    std::deque<std::vector<PickleValue>> m_containers;
    PickleValue m_root;
};

// Gives the payload of a storage key; throws ReadError when there is none.
using StorageSource = std::function<Payload(const std::string &key)>;

// Protocols 2 to 5. Throws ReadError, or NeedsCode for classes. `control` may be null.
[[nodiscard]] PickleDocument unpickle(std::string_view bytes, const StorageSource &storages, ReadControl *control);

} // namespace dblame
