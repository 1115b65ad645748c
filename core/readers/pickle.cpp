// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/readers/pickle.h"

#include <cstring>
#include <unordered_map>
#include <utility>

#include "core/readers/pickle_objects.h"

namespace dblame
{

namespace
{

constexpr std::size_t kMaxStack = 10'000'000;
constexpr std::size_t kMaxMemo = 50'000'000;

} // namespace

class Unpickler
{
public:
    using Value = PickleValue;
    using Kind = PickleValue::Kind;

    Unpickler(std::string_view bytes, const StorageSource &storages, ReadControl *control)
        : m_bytes(bytes), m_control(control), m_objects(storages, m_document.m_containers)
    {
    }

    PickleDocument run()
    {
        constexpr std::size_t kBetweenChecks = 65536;
        for (std::size_t count = 1;; ++count) {
            if (m_control != nullptr && count % kBetweenChecks == 0)
                m_control->check();
            const std::uint8_t opcode = u8();
            if (opcode == '.')
                break;
            if (!literal(opcode) && !container(opcode) && !memo(opcode) && !object(opcode))
                throw ReadError("the pickle uses opcode " + std::to_string(opcode) + ", which no weight file needs");
            if (m_stack.size() > kMaxStack)
                throw ReadError("the pickle needs too deep a stack");
        }
        m_document.m_root = pop();
        if (m_document.m_root.kind >= Kind::Mark)
            throw ReadError("the pickle holds no object");
        return std::move(m_document);
    }

private:
    // --- bytes ---
    std::uint8_t u8() { return little<std::uint8_t>(); }
    template <class T>
    T little()
    {
        if (m_bytes.size() - m_at < sizeof(T))
            throw ReadError("the pickle is truncated");
        T value;
        std::memcpy(&value, m_bytes.data() + m_at, sizeof(T));
        m_at += sizeof(T);
        return value;
    }
    std::string text(std::uint64_t length)
    {
        if (m_bytes.size() - m_at < length)
            throw ReadError("the pickle is truncated");
        std::string result(m_bytes.substr(m_at, length));
        m_at += length;
        return result;
    }
    std::string line()
    {
        const auto end = m_bytes.find('\n', m_at);
        if (end == std::string_view::npos)
            throw ReadError("the pickle is truncated");
        std::string result(m_bytes.substr(m_at, end - m_at));
        m_at = end + 1;
        return result;
    }

    // --- stack ---
    Value pop()
    {
        if (m_stack.empty())
            throw ReadError("the pickle is damaged (empty stack)");
        Value value = std::move(m_stack.back());
        m_stack.pop_back();
        return value;
    }
    Value &top()
    {
        if (m_stack.empty())
            throw ReadError("the pickle is damaged (empty stack)");
        return m_stack.back();
    }
    void push(Value value) { m_stack.push_back(std::move(value)); }
    void pushInt(std::int64_t integer)
    {
        Value value;
        value.kind = Kind::Int;
        value.integer = integer;
        push(std::move(value));
    }
    void pushText(Kind kind, std::string content)
    {
        Value value;
        value.kind = kind;
        value.text = std::move(content);
        push(std::move(value));
    }
    std::vector<Value> toMark()
    {
        std::size_t mark = m_stack.size();
        while (mark > 0 && m_stack[mark - 1].kind != Kind::Mark)
            --mark;
        if (mark == 0)
            throw ReadError("the pickle is damaged (no mark)");
        std::vector<Value> values(std::make_move_iterator(m_stack.begin() + static_cast<std::ptrdiff_t>(mark)),
                                  std::make_move_iterator(m_stack.end()));
        m_stack.resize(mark - 1);
        return values;
    }
    std::vector<Value> popMany(std::size_t count)
    {
        if (m_stack.size() < count)
            throw ReadError("the pickle is damaged (empty stack)");
        std::vector<Value> values(std::make_move_iterator(m_stack.end() - static_cast<std::ptrdiff_t>(count)),
                                  std::make_move_iterator(m_stack.end()));
        m_stack.resize(m_stack.size() - count);
        return values;
    }
    Value make(Kind kind, std::vector<Value> items) { return m_objects.container(kind, std::move(items)); }

    // --- opcodes; each group returns false when the opcode is not one of its own ---
    bool literal(std::uint8_t opcode)
    {
        switch (opcode) {
        case 0x80: // PROTO
            if (const auto protocol = u8(); protocol < 2 || protocol > 5)
                throw ReadError("pickle protocol " + std::to_string(protocol) + " is not known");
            return true;
        case 0x95: // FRAME
            (void)little<std::uint64_t>();
            return true;
        case 'N':
            push({});
            return true;
        case 0x88:   // NEWTRUE
        case 0x89: { // NEWFALSE
            pushInt(opcode == 0x88 ? 1 : 0);
            top().kind = Kind::Bool;
            return true;
        }
        case 'J':
            pushInt(little<std::int32_t>());
            return true;
        case 'K':
            pushInt(u8());
            return true;
        case 'M':
            pushInt(little<std::uint16_t>());
            return true;
        case 0x8a: // LONG1
            pushInt(longInt(u8()));
            return true;
        case 'G': {
            auto bits = little<std::uint64_t>();
            bits = __builtin_bswap64(bits);
            Value value;
            value.kind = Kind::Float;
            std::memcpy(&value.number, &bits, sizeof bits);
            push(std::move(value));
            return true;
        }
        case 'X':
            pushText(Kind::Text, text(little<std::uint32_t>()));
            return true;
        case 0x8c: // SHORT_BINUNICODE
        case 'U':  // SHORT_BINSTRING
            pushText(Kind::Text, text(u8()));
            return true;
        case 0x8d: // BINUNICODE8
            pushText(Kind::Text, text(little<std::uint64_t>()));
            return true;
        case 'T':
            pushText(Kind::Text, text(little<std::uint32_t>()));
            return true;
        case 'C':
            pushText(Kind::Bytes, text(u8()));
            return true;
        case 'B':
            pushText(Kind::Bytes, text(little<std::uint32_t>()));
            return true;
        case 0x8e: // BINBYTES8
            pushText(Kind::Bytes, text(little<std::uint64_t>()));
            return true;
        default:
            return false;
        }
    }
    std::int64_t longInt(std::size_t length)
    {
        const std::string digits = text(length);
        if (length > sizeof(std::int64_t))
            throw ReadError("the pickle holds an integer beyond 64 bits");
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < length; ++i)
            value |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(digits[i])) << (8 * i);
        if (length > 0 && length < sizeof value && (static_cast<std::uint8_t>(digits.back()) & 0x80U) != 0)
            value |= ~std::uint64_t{0} << (8 * length);
        return static_cast<std::int64_t>(value);
    }

    bool container(std::uint8_t opcode)
    {
        switch (opcode) {
        case '(': {
            Value mark;
            mark.kind = Kind::Mark;
            push(std::move(mark));
            return true;
        }
        case ')':
            push(make(Kind::Tuple, {}));
            return true;
        case 't':
            push(make(Kind::Tuple, toMark()));
            return true;
        case 0x85: // TUPLE1..3
        case 0x86:
        case 0x87:
            push(make(Kind::Tuple, popMany(opcode - 0x84U)));
            return true;
        case ']':
            push(make(Kind::List, {}));
            return true;
        case 'l':
            push(make(Kind::List, toMark()));
            return true;
        case 'a': {
            std::vector<Value> one;
            one.push_back(pop());
            extend(Kind::List, std::move(one));
            return true;
        }
        case 'e':
            extend(Kind::List, toMark());
            return true;
        case '}':
            push(make(Kind::Dict, {}));
            return true;
        case 'd':
            push(make(Kind::Dict, evenItems(toMark())));
            return true;
        case 's':
            extend(Kind::Dict, popMany(2));
            return true;
        case 'u':
            extend(Kind::Dict, evenItems(toMark()));
            return true;
        case '0':
            (void)pop();
            return true;
        case '1':
            (void)toMark();
            return true;
        case '2': {
            Value copy = top();
            push(std::move(copy));
            return true;
        }
        default:
            return false;
        }
    }
    static std::vector<Value> evenItems(std::vector<Value> items)
    {
        if (items.size() % 2 != 0)
            throw ReadError("the pickle is damaged (a key without a value)");
        return items;
    }
    void extend(Kind kind, std::vector<Value> items)
    {
        const Value &target = top();
        if (target.kind != kind)
            throw ReadError("the pickle is damaged (items for something that is no container)");
        target.items->insert(target.items->end(), std::make_move_iterator(items.begin()),
                             std::make_move_iterator(items.end()));
    }

    bool memo(std::uint8_t opcode)
    {
        switch (opcode) {
        case 'q':
            remember(u8());
            return true;
        case 'r':
            remember(little<std::uint32_t>());
            return true;
        case 0x94: // MEMOIZE
            remember(static_cast<std::uint32_t>(m_memo.size()));
            return true;
        case 'h':
            recall(u8());
            return true;
        case 'j':
            recall(little<std::uint32_t>());
            return true;
        default:
            return false;
        }
    }
    void remember(std::uint32_t slot)
    {
        if (m_memo.size() > kMaxMemo)
            throw ReadError("the pickle remembers too much");
        m_memo[slot] = top();
    }
    void recall(std::uint32_t slot)
    {
        const auto it = m_memo.find(slot);
        if (it == m_memo.end())
            throw ReadError("the pickle is damaged (unknown memo)");
        push(it->second);
    }

    bool object(std::uint8_t opcode)
    {
        switch (opcode) {
        case 'c': {
            const std::string module = line();
            push(PickleObjects::global(module + "." + line()));
            return true;
        }
        case 0x93: { // STACK_GLOBAL
            const std::vector<Value> names = popMany(2);
            if (names[0].kind != Kind::Text || names[1].kind != Kind::Text)
                throw ReadError("the pickle is damaged (name of a class)");
            push(PickleObjects::global(names[0].text + "." + names[1].text));
            return true;
        }
        case 'R':    // REDUCE
        case 0x81: { // NEWOBJ
            const Value arguments = pop();
            const Value function = pop();
            if (function.kind != Kind::Global || arguments.kind != Kind::Tuple)
                throw ReadError("the pickle is damaged (call of something that is no function)");
            push(m_objects.reduce(function.text, *arguments.items));
            return true;
        }
        case 'b': // BUILD: attributes of an OrderedDict (_metadata), of no interest
            (void)pop();
            if (top().kind != Kind::Dict)
                throw NeedsCode("the file sets the state of an object; that needs its Python code");
            return true;
        case 'Q':
            push(m_objects.storage(pop()));
            return true;
        default:
            return false;
        }
    }
    std::string_view m_bytes;
    std::size_t m_at = 0;
    ReadControl *m_control;
    std::vector<Value> m_stack;
    std::unordered_map<std::uint32_t, Value> m_memo;
    PickleDocument m_document;
    PickleObjects m_objects; // after m_document, whose containers it fills
};

PickleDocument unpickle(std::string_view bytes, const StorageSource &storages, ReadControl *control)
{
    return Unpickler(bytes, storages, control).run();
}

} // namespace dblame
