// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a value is computed from, as a digest: two values of two graphs with equal keys are the same, for they come from
// the same operators on the same inputs. Results are kept from one candidate, and one process, to the next by it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/qparams.h"
#include "core/readers/loaded_model.h"
#include "core/readers/sha256.h"
#include "core/tensor_spec.h"

namespace dblame
{

using ValueKey = std::string; // SHA-256, lower-case hex

// A SHA-256 over parts; each is marked off from the next, so that no two lists of parts give the same bytes.
class Digest
{
public:
    explicit Digest(std::string_view what) { text(what); }

    Digest &text(std::string_view part);
    Digest &number(std::int64_t part);
    Digest &real(double part);              // its bits
    Digest &tensor(const at::Tensor &part); // type, sizes, strides, elements; undefined: as such
    Digest &spec(const TensorSpec &part);
    Digest &qparams(const Qparams &part);
    [[nodiscard]] ValueKey key() { return m_hash.hex(); } // once, at the end

private:
    Sha256 m_hash;
};

// For a node that stands for a site: the key of its result, from that of its source. nullopt: it is an operator.
using SiteKey = std::function<std::optional<ValueKey>(NodeId node, const std::vector<ValueKey> &known)>;

// The keys of all values of the model's graph. User inputs count by position: what they hold is not part of a key.
// Stored tensors count by content up to 64 KiB, larger ones by name within `origin`, which says what file they are of
// and how they were rewritten. An operator that writes into its argument leaves the argument's key as it is: who keeps
// values by key has to leave out those that are written later.
[[nodiscard]] std::vector<ValueKey> valueKeys(const LoadedModel &model, const std::string &origin,
                                              const SiteKey &siteKey);

} // namespace dblame
