// SPDX-License-Identifier: GPL-3.0-or-later
//
// One QApplication around all tests of a program, off screen, with the theme on.
#include <memory>

#include <QApplication>

#include <gtest/gtest.h>

#include "ui/theme.h"

namespace
{

class QtEnvironment final : public ::testing::Environment
{
public:
    void SetUp() override
    {
        if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM"))
            qputenv("QT_QPA_PLATFORM", "offscreen");
        static int argc = 1;
        static char name[] = "tests";
        static char *argv[] = {name, nullptr};
        m_app = std::make_unique<QApplication>(argc, argv);
        dblame::ui::Theme::apply(*m_app, QStringLiteral("light"));
    }
    void TearDown() override { m_app.reset(); }

private:
    std::unique_ptr<QApplication> m_app;
};

[[maybe_unused]] const auto *const registered = ::testing::AddGlobalTestEnvironment(new QtEnvironment);

} // namespace
