// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/engine/allocator.h"

#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#if defined(__GLIBC__) || defined(__linux__)
#include <malloc.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#define DBLAME_BLOCK_ALLOCATOR 1
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#undef DBLAME_BLOCK_ALLOCATOR
#endif

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

namespace dblame
{

#if defined(DBLAME_BLOCK_ALLOCATOR)

namespace
{

constexpr std::size_t kLarge = std::size_t{64} << 10U; // smaller tensors stay on the heap
constexpr std::size_t kKeep = std::size_t{256} << 20U; // freed bytes that are kept at most
constexpr std::size_t kHeader = 64;                    // also the alignment that ATen's kernels expect
constexpr std::size_t kColours = 16;                   // start offsets, so that buffers do not share cache sets

// Stands before the data of every block.
struct Header {
    void *base = nullptr;   // of the mapping, or of the heap block
    std::size_t mapped = 0; // bytes of the mapping; 0: on the heap
};
static_assert(sizeof(Header) <= kHeader);

Header *headerOf(void *data)
{
    return reinterpret_cast<Header *>(static_cast<char *>(data) - kHeader);
}

class BlockAllocator final : public c10::Allocator
{
public:
    c10::DataPtr allocate(std::size_t bytes) override
    {
        if (bytes == 0)
            return {nullptr, nullptr, &BlockAllocator::release, c10::Device(c10::DeviceType::CPU)};
        void *data = bytes < kLarge ? fromHeap(bytes) : fromBlocks(bytes);
        return {data, data, &BlockAllocator::release, c10::Device(c10::DeviceType::CPU)};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &BlockAllocator::release; }
    void copy_data(void *to, const void *from, std::size_t bytes) const override { std::memcpy(to, from, bytes); }

    [[nodiscard]] std::uint64_t kept()
    {
        const std::lock_guard lock(m_mutex);
        return m_kept;
    }

    static BlockAllocator &instance()
    {
        // Tensors may be freed while the process ends: the allocator outlives them all.
        static auto *allocator = new BlockAllocator;
        return *allocator;
    }

private:
    static void *fromHeap(std::size_t bytes)
    {
        void *base = ::operator new (bytes + kHeader, std::align_val_t{kHeader});
        void *data = static_cast<char *>(base) + kHeader;
        *headerOf(data) = Header{base, 0};
        return data;
    }

    void *fromBlocks(std::size_t bytes)
    {
        // Sizes are rounded so that tensors that differ a little share blocks: to 64 KiB, above 1 MiB to a sixteenth.
        const std::size_t need = bytes + kHeader * (kColours + 1);
        std::size_t unit = kLarge;
        while (unit * 16 < need)
            unit *= 2;
        const std::size_t size = (need + unit - 1) / unit * unit;
        const std::lock_guard lock(m_mutex);
        void *base = nullptr;
        if (const auto kept = m_free.find(size); kept != m_free.end()) {
            base = kept->second.back();
            kept->second.pop_back();
            if (kept->second.empty())
                m_free.erase(kept);
            m_kept -= size;
        } else {
            base = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (base == MAP_FAILED)
                throw std::bad_alloc();
        }
        m_colour = (m_colour + 1) % kColours;
        void *data = static_cast<char *>(base) + kHeader * (1 + m_colour);
        *headerOf(data) = Header{base, size};
        return data;
    }

    static void release(void *data)
    {
        if (data == nullptr)
            return;
        const Header header = *headerOf(data);
        if (header.mapped == 0)
            ::operator delete (header.base, std::align_val_t{kHeader});
        else
            instance().keep(header.base, header.mapped);
    }

    void keep(void *base, std::size_t size)
    {
        std::vector<std::pair<void *, std::size_t>> surplus;
        {
            const std::lock_guard lock(m_mutex);
            m_free[size].push_back(base);
            m_kept += size;
            // Past the limit the largest go: one of them is worth many small ones.
            while (m_kept > kKeep) {
                const auto largest = std::prev(m_free.end());
                surplus.emplace_back(largest->second.back(), largest->first);
                m_kept -= largest->first;
                largest->second.pop_back();
                if (largest->second.empty())
                    m_free.erase(largest);
            }
        }
        for (const auto &[block, bytes] : surplus)
            ::munmap(block, bytes);
    }

    std::mutex m_mutex;
    std::map<std::size_t, std::vector<void *>> m_free; // by size of the mapping
    std::size_t m_kept = 0;
    std::size_t m_colour = 0;
};

} // namespace

void tuneAllocator()
{
    c10::SetCPUAllocator(&BlockAllocator::instance());
}

std::uint64_t keptBytes()
{
    return BlockAllocator::instance().kept();
}

#else

void tuneAllocator()
{
#if defined(__GLIBC__)
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 128 << 20);
#endif
}

std::uint64_t keptBytes()
{
    return 0;
}

#endif

} // namespace dblame
