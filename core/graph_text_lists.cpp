// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/graph_text_lists.h"

#include <algorithm>

namespace dblame::text_words
{

namespace
{

using TypedList = tl::expected<Argument, std::string>;

// The element types of lists, as Argument alternatives, to one typed list.
template <class List, class Element>
TypedList collect(const std::vector<Argument> &elements, const Element &element)
{
    List list;
    for (const auto &e : elements)
        if (!element(e, list.values))
            return tl::unexpected(std::string("element of another type in a list"));
    return Argument(std::move(list));
}

template <class T>
constexpr auto kTake = [](const Argument &e, auto &out) {
    const auto *v = std::get_if<T>(&e);
    if (v != nullptr)
        out.push_back(*v);
    return v != nullptr;
};
template <class T>
constexpr auto kTakeOrValue = [](const Argument &e, auto &out) { return kTake<T>(e, out) || kTake<ValueId>(e, out); };
template <class List>
constexpr auto kTakeList = [](const Argument &e, auto &out) {
    const auto *v = std::get_if<List>(&e);
    if (v != nullptr)
        out.emplace_back(v->values.begin(), v->values.end());
    return v != nullptr;
};

// [[1, 2], []]: inner lists arrive as IntListArg (also empty ones), whose elements must be numbers here.
bool takeInts(const Argument &e, std::vector<std::vector<std::int64_t>> &out)
{
    const auto *v = std::get_if<IntListArg>(&e);
    if (v == nullptr)
        return false;
    auto &inner = out.emplace_back();
    return std::all_of(v->values.begin(), v->values.end(), [&inner](const auto &n) {
        const auto *number = std::get_if<std::int64_t>(&n);
        if (number != nullptr)
            inner.push_back(*number);
        return number != nullptr;
    });
}

bool isEmptyList(const Argument &e)
{
    const auto *v = std::get_if<IntListArg>(&e);
    return v != nullptr && v->values.empty();
}

bool takeFloats(const Argument &e, std::vector<std::vector<double>> &out)
{
    if (isEmptyList(e))
        return out.emplace_back(), true;
    return kTakeList<FloatListArg>(e, out);
}

bool takeValues(const Argument &e, std::vector<std::vector<ValueId>> &out)
{
    auto &inner = out.emplace_back();
    if (isEmptyList(e))
        return true;
    const auto *v = std::get_if<ValueListArg>(&e);
    return v != nullptr && std::all_of(v->values.begin(), v->values.end(), [&inner](const auto &id) {
               if (id)
                   inner.push_back(*id);
               return id.has_value();
           });
}

bool takeOptional(const Argument &e, std::vector<std::optional<ValueId>> &out)
{
    if (std::holds_alternative<NoneArg>(e))
        return out.emplace_back(), true;
    return kTake<ValueId>(e, out);
}

TypedList inferred(const std::vector<Argument> &elements)
{
    const auto any = [&](const auto &test) { return std::any_of(elements.begin(), elements.end(), test); };
    const auto holds = [&](auto tag) {
        return any([](const Argument &e) { return std::holds_alternative<decltype(tag)>(e); });
    };
    if (elements.empty() || holds(std::int64_t{}))
        return collect<IntListArg>(elements, kTakeOrValue<std::int64_t>);
    if (holds(bool{}))
        return collect<BoolListArg>(elements, kTakeOrValue<bool>);
    if (holds(double{}))
        return collect<FloatListArg>(elements, kTake<double>);
    if (holds(std::string{}))
        return collect<StringListArg>(elements, kTake<std::string>);
    if (holds(FloatListArg{}))
        return collect<FloatListsArg>(elements, takeFloats);
    if (holds(ValueListArg{}))
        return collect<NestedValueListArg>(elements, takeValues);
    if (holds(IntListArg{}))
        return collect<IntListsArg>(elements, takeInts);
    if (holds(ValueId{}))
        return collect<ValueListArg>(elements, takeOptional);
    return tl::unexpected(std::string("a list of what? Write its kind before it (tensors[...], floats[...])"));
}

} // namespace

tl::expected<Argument, std::string> typedList(std::string_view kind, const std::vector<Argument> &elements)
{
    if (kind.empty())
        return inferred(elements);
    if (kind == "tensors")
        return collect<ValueListArg>(elements, takeOptional);
    if (kind == "tensorlists")
        return collect<NestedValueListArg>(elements, takeValues);
    if (kind == "ints")
        return collect<IntListArg>(elements, kTakeOrValue<std::int64_t>);
    if (kind == "intlists")
        return collect<IntListsArg>(elements, takeInts);
    if (kind == "floats")
        return collect<FloatListArg>(elements, kTake<double>);
    if (kind == "floatlists")
        return collect<FloatListsArg>(elements, takeFloats);
    if (kind == "bools")
        return collect<BoolListArg>(elements, kTakeOrValue<bool>);
    if (kind == "strings")
        return collect<StringListArg>(elements, kTake<std::string>);
    return tl::unexpected("unknown kind of list '" + std::string(kind) + "'");
}

} // namespace dblame::text_words
