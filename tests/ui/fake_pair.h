// SPDX-License-Identifier: GPL-3.0-or-later
//
// The fake pair, opened and run without threads.
#pragma once

#include <memory>

#include "fake_engine.h"
#include "ui/engine_side.h"

namespace dblame::ui::test
{

struct NoSink final : ReportSink {
    void row(const NodeReport &) override {}
    void progress(std::int64_t, std::int64_t, std::int64_t, std::int64_t) override {}
};

struct FakePair {
    FakeEngine engine;
    EngineSide side{[this]() -> Result<Engine *> { return &engine; }};
    Opened opened;
    OpenRequest request{"float.pt2", "int8.pt2", {}, {}};

    FakePair()
    {
        opened = side.open(request, [](auto, auto, auto) {}, {}).value();
    }
    [[nodiscard]] const OpenPairPtr &pair() const { return opened.pair; }
    [[nodiscard]] std::shared_ptr<const RunReport> run(const EditSet &edits = {})
    {
        NoSink sink;
        return std::make_shared<const RunReport>(side.run(edits, {}, sink, {}).value());
    }
    [[nodiscard]] SiteId site(const std::string &id) const { return opened.pair->sites.byId(id); }
    [[nodiscard]] NodeId node(const std::string &name) const { return opened.pair->candidate->graph().findNode(name); }
};

} // namespace dblame::ui::test
