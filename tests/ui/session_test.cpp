// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/session.h"

#include <QDir>
#include <QFile>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QUndoStack>

#include <gtest/gtest.h>

#include "fake_pair.h"
#include "ui/document.h"
#include "ui/edits_text.h"
#include "ui/file_kinds.h"

namespace dblame::ui::test
{
namespace
{

void touch(const QString &path)
{
    QDir().mkpath(QFileInfo(path).absolutePath());
    QFile file(path);
    ASSERT_TRUE(file.open(QIODevice::WriteOnly));
}

class SessionTest : public ::testing::Test
{
protected:
    FakePair fake;
    Session session;
    SessionTest() { session.setOpened(fake.request, fake.opened, nullptr); }
    [[nodiscard]] EditSet oneOff(const char *site) const
    {
        EditSet edits;
        edits.off.insert(fake.site(site));
        return edits;
    }
};

TEST_F(SessionTest, EveryEditIsAStepOfUndo)
{
    const EditSet first = oneOff("stem.conv/weight");
    const EditSet second = unite(first, oneOff("fc/weight"));
    session.changeEdits(first, "skip stem.conv");
    session.changeEdits(second, "skip fc");
    session.changeEdits(second, "nothing new");
    EXPECT_EQ(session.undoStack()->count(), 2);
    EXPECT_EQ(session.undoStack()->undoText(), "skip fc");
    session.undoStack()->undo();
    EXPECT_EQ(session.edits(), first);
    session.undoStack()->undo();
    EXPECT_TRUE(session.edits().empty());
    session.undoStack()->redo();
    session.undoStack()->redo();
    EXPECT_EQ(session.edits(), second);
    EXPECT_TRUE(session.modified());
}

TEST_F(SessionTest, PairsByHandUndoToo)
{
    QSignalSpy asked(&session, &Session::handChanged);
    session.changeHand({{"linear", "logits"}}, "pair");
    ASSERT_EQ(session.hand().size(), 1U);
    session.undoStack()->undo();
    EXPECT_TRUE(session.hand().empty());
    EXPECT_EQ(asked.size(), 2);
}

TEST_F(SessionTest, ARunIsShownOverTheOneBefore)
{
    session.addRun(fake.run(), {});
    EXPECT_EQ(session.shownRun(), 0);
    EXPECT_EQ(session.overlaidRun(), -1);
    const EditSet edits = oneOff("head_conv.conv/weight");
    session.changeEdits(edits, "skip");
    EXPECT_TRUE(session.changePending());
    session.addRun(fake.run(edits), edits);
    EXPECT_FALSE(session.changePending());
    EXPECT_EQ(session.shownRun(), 1);
    EXPECT_EQ(session.overlaidRun(), 0);
    EXPECT_EQ(session.runs()[0].label, "as opened");
    EXPECT_EQ(session.runs()[1].label, "head_conv.conv float here");
    EXPECT_DOUBLE_EQ(*session.runs()[1].outputDb(Signal::Reference), 33.92 + kDbPerSite);
    EXPECT_DOUBLE_EQ(*session.runs()[1].outputDb(Signal::Candidate), 33.93 + kDbPerSite);
    session.showRun(0, -1);
    EXPECT_TRUE(session.changePending());
}

TEST_F(SessionTest, APlanForEditsThatMovedOnIsIgnored)
{
    session.changeEdits(oneOff("fc/weight"), "skip");
    session.setPlan({}, {});
    EXPECT_FALSE(session.plan().has_value());
    session.setPlan({}, session.edits());
    EXPECT_TRUE(session.plan().has_value());
}

TEST_F(SessionTest, EditsFollowToAnotherCandidateByName)
{
    EditSet edits = oneOff("block.conv1/weight");
    edits = unite(edits, oneOff("fc/weight")); // the other net's last layer is called otherwise: no such site
    edits.bypassed.insert({fake.site("pool1/out"), fake.node("conv2d_1")});
    edits.respecified[fake.site("stem.conv/weight")] = {4, Granularity::PerChannel, {}, 32};
    session.changeEdits(edits, "several");
    OpenRequest request = fake.request;
    request.candidate = "other.pt2";
    const Opened opened = fake.side.open(request, [](auto, auto, auto) {}, {}).value();
    QStringList lost;
    session.setOpened(request, opened, &lost);
    EXPECT_EQ(lost, QStringList{"fc/weight"});
    EXPECT_TRUE(session.edits().off.contains(opened.pair->sites.byId("block.conv1/weight")));
    EXPECT_EQ(session.edits().off.size(), 1U);
    EXPECT_EQ(session.edits().bypassed.size(), 1U);
    EXPECT_EQ(session.edits().respecified.begin()->second.bits, 4);
    EXPECT_EQ(session.undoStack()->count(), 0); // its steps spoke of the other candidate's sites
}

TEST_F(SessionTest, AnEarlierRunIsMappedToTheAlignmentThatIsOpen)
{
    session.addRun(fake.run(), {});
    fake.engine.unpairFc = true;
    const Opened opened = fake.side.open(fake.request, [](auto, auto, auto) {}, {}).value();
    ASSERT_EQ(opened.pair->alignment.pairs.size(), static_cast<std::size_t>(kFakeRows - 1));
    session.setOpened(fake.request, opened, nullptr);
    const auto report = session.reportFor(0);
    ASSERT_EQ(report->rows.size(), static_cast<std::size_t>(kFakeRows - 1));
    EXPECT_DOUBLE_EQ(report->rows.back().metrics.snrDb, 33.8);
    EXPECT_EQ(report->rows.back().row, PairId(kFakeRows - 2));
}

TEST_F(SessionTest, DescribesEdits)
{
    const OpenPair &pair = *fake.pair();
    EXPECT_EQ(describeEdits({}, pair), "as opened");
    EditSet edits = oneOff("head_conv.conv/weight");
    edits.bypassed.insert({fake.site("pool2/out"), fake.node("conv2d_3")});
    EXPECT_EQ(describeEdits(edits, pair), "head_conv.conv float here");
    EXPECT_EQ(describeEdits(unite(edits, oneOff("fc/weight")), pair), "head_conv.conv and fc float here");
    edits.respecified[fake.site("stem.conv/weight")] = {4, Granularity::PerChannel, true, 32};
    EXPECT_EQ(describeEdits(edits, pair), "head_conv.conv float here, stem.conv/weight int4 symmetric per channel");
}

TEST(DocumentTest, ComesBackAsItWasSaved)
{
    const QTemporaryDir folder;
    touch(folder.filePath("models/float.pt2"));
    touch(folder.filePath("models/int8.pt2"));
    touch(folder.filePath("inputs.npz"));
    Document document;
    document.reference = folder.filePath("models/float.pt2");
    document.candidate = folder.filePath("models/int8.pt2") + "#second";
    document.inputs = {folder.filePath("inputs.npz")};
    document.edits.off = {"block.conv1/weight"};
    document.edits.bypassed = {{"conv2d_3→add/in[1]", "add"}};
    document.edits.respecified["fc/weight"] = {4, Granularity::PerBlock, true, 64};
    document.edits.respecified["gap/out"] = {
        8, Granularity::PerTensor, std::nullopt, 32, ElementType::Float8E4M3, -0.1, 1e-7};
    document.hand = {{"linear", "logits"}};
    document.signal = Signal::Candidate;
    document.geometry = QByteArray("\0\1geometry", 10);
    document.docks = "docks";
    document.theme = "dark";
    const QString path = folder.filePath("a.dblame");
    ASSERT_TRUE(writeDocument(path, document).has_value());
    const auto back = readDocument(path);
    ASSERT_TRUE(back.has_value()) << back.error().text();
    EXPECT_EQ(back->reference, document.reference);
    EXPECT_EQ(back->candidate, document.candidate);
    EXPECT_EQ(back->inputs, document.inputs);
    EXPECT_EQ(back->edits, document.edits);
    ASSERT_EQ(back->hand.size(), 1U);
    EXPECT_EQ(back->hand[0].cand, "logits");
    EXPECT_EQ(back->signal, Signal::Candidate);
    EXPECT_EQ(back->geometry, document.geometry);
    EXPECT_EQ(back->docks, document.docks);
    EXPECT_EQ(back->theme, "dark");
    EXPECT_FALSE(back->random.has_value());
}

TEST(DocumentTest, AFolderThatMovedStillOpensAndAFileThatStayedBehindIsFound)
{
    const QTemporaryDir folder;
    touch(folder.filePath("old/float.pt2"));
    touch(folder.filePath("elsewhere/int8.pt2"));
    Document document;
    document.reference = folder.filePath("old/float.pt2");
    document.candidate = folder.filePath("elsewhere/int8.pt2");
    ASSERT_TRUE(writeDocument(folder.filePath("old/a.dblame"), document).has_value());
    // One level deeper, so that the relative path to "elsewhere" leads nowhere.
    ASSERT_TRUE(QDir(folder.path()).mkpath("deep/er"));
    ASSERT_TRUE(QDir(folder.path()).rename("old", "deep/er/new"));
    const auto back = readDocument(folder.filePath("deep/er/new/a.dblame"));
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(back->reference, folder.filePath("deep/er/new/float.pt2"));
    EXPECT_EQ(back->candidate, document.candidate);
}

TEST(DocumentTest, RefusesWhatIsNoneInWords)
{
    const QTemporaryDir folder;
    const QString path = folder.filePath("a.dblame");
    EXPECT_EQ(readDocument(path).error().code, ErrorCode::Unreadable);
    QFile file(path);
    ASSERT_TRUE(file.open(QIODevice::WriteOnly));
    file.write("{\"reference\": 3}");
    file.close();
    EXPECT_NE(readDocument(path).error().message.find("not a dBlame document"), std::string::npos);
    ASSERT_TRUE(file.open(QIODevice::WriteOnly));
    file.write("{\"dblame\": 99}");
    file.close();
    EXPECT_NE(readDocument(path).error().message.find("newer"), std::string::npos);
    EXPECT_FALSE(writeDocument(folder.filePath("no/such/folder/a.dblame"), {}).has_value());
}

TEST(FileKinds, SortsWhatIsDropped)
{
    const QTemporaryDir folder;
    touch(folder.filePath("pair/reference.pt2"));
    touch(folder.filePath("pair/candidate.pt2"));
    touch(folder.filePath("pair/inputs.npz"));
    ASSERT_TRUE(QDir(folder.path()).mkdir("empty"));
    const SortedFiles loose = sortFiles({"a.pt2", "x.npz", "b.pt2#second", "y.PT"});
    EXPECT_EQ(loose.models, (QStringList{"a.pt2", "b.pt2#second"}));
    EXPECT_EQ(loose.inputs, (QStringList{"x.npz", "y.PT"}));
    const SortedFiles pair = sortFiles({folder.filePath("pair")});
    EXPECT_EQ(pair.models, (QStringList{folder.filePath("pair/reference.pt2"), folder.filePath("pair/candidate.pt2")}));
    EXPECT_EQ(pair.inputs, QStringList{folder.filePath("pair/inputs.npz")});
    const SortedFiles other = sortFiles({folder.filePath("empty"), "work.dblame"});
    EXPECT_EQ(other.unknown, QStringList{folder.filePath("empty")});
    EXPECT_EQ(other.document, "work.dblame");
}

} // namespace
} // namespace dblame::ui::test
