// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/readers/sha256.h"

#include <array>
#include <stdexcept>
#include <string_view>

#include <openssl/evp.h>

namespace dblame
{

struct Sha256::State {
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : m_state(std::make_unique<State>())
{
    if (m_state->context == nullptr || EVP_DigestInit_ex(m_state->context, EVP_sha256(), nullptr) != 1)
        throw std::runtime_error("SHA-256 is not available in this OpenSSL");
}

Sha256::~Sha256() = default;

void Sha256::add(const void *data, std::size_t size)
{
    if (size != 0)
        EVP_DigestUpdate(m_state->context, data, size);
}

std::string Sha256::hex()
{
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int length = 0;
    EVP_DigestFinal_ex(m_state->context, digest.data(), &length);
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    for (unsigned int i = 0; i < length; ++i)
        text += {kDigits[digest[i] >> 4U], kDigits[digest[i] & 15U]};
    return text;
}

} // namespace dblame
