// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/spec_editor.h"

#include <algorithm>

#include <QComboBox>
#include <QDoubleValidator>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QSignalBlocker>
#include <QSpinBox>
#include <QVBoxLayout>

#include "core/number_text.h"
#include "core/spec_change.h"

namespace dblame::ui
{

namespace
{

// Wide to narrow, integers first: int8 is where most begin.
constexpr ElementType kOffered[] = {ElementType::Int16,      ElementType::Int8,       ElementType::Int7,
                                    ElementType::Int6,       ElementType::Int5,       ElementType::Int4,
                                    ElementType::Int3,       ElementType::Int2,       ElementType::UInt16,
                                    ElementType::UInt8,      ElementType::UInt7,      ElementType::UInt6,
                                    ElementType::UInt5,      ElementType::UInt4,      ElementType::UInt3,
                                    ElementType::UInt2,      ElementType::Float8E4M3, ElementType::Float8E5M2,
                                    ElementType::Float4E2M1, ElementType::BFloat16,   ElementType::Float16};

// What an entry of the type field stands for: an ElementType, a number of bits that no type has, or the file's table.
constexpr int kBitsData = 1000;
constexpr int kTableData = -1;
constexpr int kLargestBlock = 1 << 16;
// Pixels; of a combo box: what the style sheet puts around the text.
constexpr int kSmallestField = 84, kSmallestBound = 40, kComboFrame = 60;

QString typeName(ElementType type)
{
    const std::string_view name = elementTypeName(type);
    return QString::fromLatin1(name.data(), static_cast<qsizetype>(name.size()));
}

QString numberText(const std::optional<double> &number)
{
    return number ? QString::fromStdString(shortestText(*number)) : QString();
}

QComboBox *field(const QString &name)
{
    auto *box = new QComboBox;
    box->setAccessibleName(name);
    box->setToolTip(name);
    box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    box->setMinimumContentsLength(6);
    box->setMinimumWidth(kSmallestField);
    return box;
}

QLineEdit *boundField(const QString &name, const QString &hint)
{
    auto *edit = new QLineEdit;
    edit->setAccessibleName(name);
    edit->setToolTip(name + SpecEditor::tr("; empty: as the site's own scale or the values tell"));
    edit->setPlaceholderText(hint);
    auto *validator = new QDoubleValidator(edit);
    validator->setLocale(QLocale::c());
    edit->setValidator(validator);
    edit->setMinimumWidth(kSmallestBound);
    return edit;
}

bool isCast(const std::optional<ElementType> &type)
{
    return type == ElementType::BFloat16 || type == ElementType::Float16;
}

std::optional<ElementType> typeOf(const QComboBox *box)
{
    const int data = box->currentData().toInt();
    return data >= 0 && data < kBitsData ? std::optional(static_cast<ElementType>(data)) : std::nullopt;
}

// A table's entries are numbered in so many bits: the type that is as wide.
ElementType asWideAs(int bits)
{
    ElementType found = ElementType::Int16;
    for (const ElementType type : kOffered)
        if (isInteger(type) && isSigned(type) && bitsOf(type) >= bits)
            found = type;
    return found;
}

} // namespace

SpecEditor::SpecEditor(QWidget *parent)
    : QWidget(parent), m_type(field(tr("Element type of the selected site"))),
      m_scheme(field(tr("Scheme of the selected site"))), m_granularity(field(tr("Granularity of the selected site"))),
      m_block(new QSpinBox), m_low(boundField(tr("Low end of the range"), tr("low"))),
      m_high(boundField(tr("High end of the range"), tr("high"))), m_to(new QLabel(QStringLiteral("…")))
{
    m_granularity->setMinimumWidth(
        m_granularity->fontMetrics().horizontalAdvance(QString::fromLatin1(granularityName(Granularity::PerChannel))) +
        kComboFrame);
    m_scheme->addItem(tr("symmetric"), true);
    m_scheme->addItem(tr("affine"), false);
    m_block->hide(); // instead of the range: the two together would ask for a wider dock
    m_block->setRange(1, kLargestBlock);
    m_block->setMinimumWidth(kSmallestField);
    m_block->setPrefix(tr("of "));
    m_block->setKeyboardTracking(false);
    m_block->setAccessibleName(tr("Block size of the selected site"));
    m_block->setToolTip(m_block->accessibleName());
    if (auto *edit = m_block->findChild<QLineEdit *>())
        edit->setAccessibleName(m_block->accessibleName());
    m_to->setProperty("role", "mute");
    for (QComboBox *box : {m_type, m_scheme, m_granularity})
        connect(box, &QComboBox::activated, this, &SpecEditor::take);
    connect(m_block, &QSpinBox::valueChanged, this, &SpecEditor::take);
    for (QLineEdit *edit : {m_low, m_high})
        connect(edit, &QLineEdit::editingFinished, this, &SpecEditor::take);
    auto *first = new QHBoxLayout;
    first->setSpacing(4);
    first->addWidget(m_type, 1);
    first->addWidget(m_scheme, 1);
    auto *second = new QHBoxLayout;
    second->setSpacing(4);
    second->addWidget(m_granularity, 3);
    second->addWidget(m_block, 3);
    second->addWidget(m_low, 2);
    second->addWidget(m_to);
    second->addWidget(m_high, 2);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(4);
    layout->addLayout(first);
    layout->addLayout(second);
}

void SpecEditor::setSite(const QuantSite &site, const std::optional<SpecChange> &change)
{
    m_site = site;
    const QSignalBlocker quietType(m_type);
    const QSignalBlocker quietScheme(m_scheme);
    const QSignalBlocker quietGranularity(m_granularity);
    const QSignalBlocker quietBlock(m_block);
    fillTypes(change);
    const bool symmetric = change && change->symmetric ? *change->symmetric : site.spec.symmetric;
    m_scheme->setCurrentIndex(symmetric ? 0 : 1);
    fillGranularities(change ? change->granularity : site.spec.granularity);
    const bool blocks = change && change->granularity == Granularity::PerBlock;
    m_block->setValue(static_cast<int>(std::min<std::int64_t>(blocks                    ? change->blockSize
                                                              : site.spec.blockSize > 0 ? site.spec.blockSize
                                                                                        : SpecChange{}.blockSize,
                                                              kLargestBlock)));
    m_low->setText(change ? numberText(change->low) : QString());
    m_high->setText(change ? numberText(change->high) : QString());
    showFitting();
}

void SpecEditor::fillTypes(const std::optional<SpecChange> &change)
{
    const std::optional<ElementType> own = elementTypeOf(m_site.spec);
    const bool isUnsigned = m_site.spec.tableSize == 0 && !isFloatGrid(m_site.spec) && m_site.spec.quantMin >= 0;
    m_type->clear();
    if (m_site.spec.tableSize > 0)
        m_type->addItem(tr("%1-bit table").arg(m_site.spec.effectiveBits()), kTableData);
    for (const ElementType type : kOffered)
        m_type->addItem(typeName(type), static_cast<int>(type));
    int bits = 0;
    std::optional<ElementType> now = own;
    if (change) {
        now = change->type;
        bits = change->type ? 0 : change->bits;
    } else if (!own && m_site.spec.tableSize == 0) {
        bits = m_site.spec.effectiveBits();
    }
    // Integers of the site's own kind may have any number of bits; those without a type of that name get an entry.
    for (const ElementType type : kOffered)
        if (bits > 0 && isInteger(type) && bitsOf(type) == bits && isSigned(type) != isUnsigned)
            now = type;
    if (now) {
        m_type->setCurrentIndex(m_type->findData(static_cast<int>(*now)));
    } else if (bits > 0) {
        m_type->insertItem(0, (isUnsigned ? tr("uint%1") : tr("int%1")).arg(bits), kBitsData + bits);
        m_type->setCurrentIndex(0);
    } else {
        m_type->setCurrentIndex(0);
    }
}

void SpecEditor::fillGranularities(Granularity now)
{
    m_granularity->clear();
    // Activations have no channel axis of their own unless their site brings one.
    for (const Granularity g :
         {Granularity::PerTensor, Granularity::PerChannel, Granularity::PerBlock, Granularity::PerToken}) {
        const bool weight = m_site.role == SiteRole::Weight;
        const bool fits = g == Granularity::PerTensor || m_site.spec.granularity == g ||
                          (g == Granularity::PerToken ? !weight : weight || m_site.spec.axis >= 0);
        if (fits || g == now)
            m_granularity->addItem(QString::fromLatin1(granularityName(g)), static_cast<int>(g));
    }
    m_granularity->setCurrentIndex(m_granularity->findData(static_cast<int>(now)));
}

void SpecEditor::showFitting()
{
    const std::optional<ElementType> type = typeOf(m_type);
    const bool floating = type && !isInteger(*type);
    if (floating)
        m_scheme->setCurrentIndex(0);
    if (isCast(type))
        m_granularity->setCurrentIndex(m_granularity->findData(static_cast<int>(Granularity::PerTensor)));
    m_scheme->setEnabled(!floating);
    m_granularity->setEnabled(!isCast(type));
    const auto granularity = static_cast<Granularity>(m_granularity->currentData().toInt());
    m_block->setVisible(granularity == Granularity::PerBlock);
    const bool ranged = granularity == Granularity::PerTensor && !isCast(type);
    for (QWidget *widget :
         {static_cast<QWidget *>(m_low), static_cast<QWidget *>(m_to), static_cast<QWidget *>(m_high)})
        widget->setVisible(ranged);
}

void SpecEditor::take()
{
    showFitting();
    Q_EMIT edited();
}

std::optional<double> SpecEditor::bound(const QLineEdit *field) const
{
    bool isNumber = false;
    const double number = QLocale::c().toDouble(field->text(), &isNumber);
    return isNumber && !field->isHidden() ? std::optional(number) : std::nullopt;
}

std::optional<SpecChange> SpecEditor::change() const
{
    const QuantSpec &own = m_site.spec;
    SpecChange change;
    change.bits = std::clamp(own.effectiveBits(), 2, 16);
    change.granularity = static_cast<Granularity>(m_granularity->currentData().toInt());
    if (own.blockSize > 0)
        change.blockSize = own.blockSize;
    if (change.granularity == Granularity::PerBlock)
        change.blockSize = m_block->value();
    const int data = m_type->currentData().toInt();
    const std::optional<ElementType> type = typeOf(m_type);
    bool isOwn = data == kTableData || type == elementTypeOf(own);
    if (data >= kBitsData) {
        change.bits = data - kBitsData;
        isOwn = own.tableSize == 0 && change.bits == own.effectiveBits();
    } else if (type && !isOwn) {
        change.type = type;
        change.bits = std::clamp(bitsOf(*type), 2, 16);
    }
    const bool symmetric = m_scheme->currentIndex() == 0;
    if (symmetric != own.symmetric && m_scheme->isEnabled())
        change.symmetric = symmetric;
    change.low = bound(m_low);
    change.high = bound(m_high);
    const bool sameUnits = change.granularity == own.granularity &&
                           (own.granularity != Granularity::PerBlock || change.blockSize == own.blockSize);
    if (isOwn && sameUnits && !change.symmetric && !change.low && !change.high)
        return std::nullopt;
    if (data == kTableData)
        change.type = asWideAs(own.effectiveBits());
    else if (isOwn && type && !isInteger(*type))
        change.type = type; // bits alone would make it an integer
    return change;
}

void SpecEditor::setBits(int bits)
{
    auto changed = change().value_or(SpecChange{});
    changed.granularity = static_cast<Granularity>(m_granularity->currentData().toInt());
    changed.blockSize = m_block->value();
    changed.type.reset();
    changed.bits = bits;
    setSite(m_site, changed);
    Q_EMIT edited();
}

} // namespace dblame::ui
