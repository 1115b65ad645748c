// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the graph dock draws, before layout: nodes, edges, quantizer marks and module groups of an open pair.
// Plain values, built once per pair and view; no Qt object but strings. buildGraph is pure and safe on every
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <QString>

#include "core/alignment.h"
#include "core/ids.h"
#include "ui/open_pair.h"

namespace dblame::ui
{

enum class GraphViewKind {
    Merged,    // the reference's operators, the candidate's quantizers as marks, what only the candidate has in grey
    Reference, // every operator of the reference, its quantizers as nodes
    Candidate, // the same of the candidate
};

struct GraphOptions {
    GraphViewKind view = GraphViewKind::Merged;
    bool parameters = false; // parameters, buffers and what is computed from them alone
    bool sites = true;       // quantizers and observers
    bool innerNodes = false; // Reference, Candidate: the operators inside quantizer clusters, sizes and flags
    friend bool operator==(const GraphOptions &, const GraphOptions &) = default;
};

// A quantizer on an edge or beside a node of the merged view: drawn as a hexagon with a letter.
struct GraphMark {
    enum class Place { Out, In, Side }; // on the value a node gives out, on one edge into it, beside it (weights)
    SiteId site;
    Place place = Place::Out;
    bool weight = false;
    bool watchesOnly = false;
    bool enabled = true;    // its own flag in the file
    int instance = 0;       // the same number on all sites that share an observer instance; 0: it is alone
    std::int32_t node = -1; // into GraphDocument::nodes
    std::int32_t edge = -1; // In: into GraphDocument::edges, -1 when its source is not drawn
    PairId row;             // whose figures belong to it; invalid when there is none
    QString name;           // site id
    QString spec;           // "int8 symmetric per channel"
    [[nodiscard]] QChar letter() const { return QLatin1Char(watchesOnly ? 'O' : weight ? 'W' : 'Q'); }
};

struct GraphNode {
    enum class Kind { Operator, Input, Parameter, Site };
    Kind kind = Kind::Operator;
    Side side = Side::Reference; // whose graph `node` and `value` are in
    NodeId node;                 // invalid for inputs and parameters
    ValueId value;               // its first tensor value
    PairId row;                  // invalid when it has no partner
    SiteId site;                 // Kind::Site of the candidate's view: the quantizer it is or is part of
    NodeId owner;                // Kind::Site: the operator that the quantizer belongs to
    bool unpaired = false;       // listed as unmatched
    bool observer = false;       // Kind::Site that only watches
    std::int32_t group = -1;     // innermost, into GraphDocument::groups
    QString label;               // module path or value name
    QString op;                  // "conv2d"
    QString path;                // module path, with the call where a module is called more than once
    QString why;                 // reason when unpaired; folded norms otherwise
    std::vector<std::int32_t> marks;
};

struct GraphEdge {
    std::int32_t from = 0, to = 0;
    std::vector<std::int32_t> marks; // Place::In, in the order the value passes them
};

struct GraphGroup {
    QString name; // path below the parent's
    QString path, type;
    std::int32_t parent = -1; // comes before its children
    int depth = 0;
    int members = 0; // nodes in it and in its children
};

struct GraphDocument {
    OpenPairPtr pair;
    GraphOptions options;
    std::vector<GraphNode> nodes;
    std::vector<GraphEdge> edges;
    std::vector<GraphMark> marks;
    std::vector<GraphGroup> groups;
    std::vector<std::int32_t> nodeOfRow;  // per pair: the node that shows it; weights: the node of their mark, or -1
    std::vector<std::int32_t> markOfSite; // per candidate site, -1 when it is not drawn

    [[nodiscard]] bool groupHolds(std::int32_t outer, std::int32_t inner) const; // also when they are the same
};
using GraphDocumentPtr = std::shared_ptr<const GraphDocument>;

// Null pair or no model for the view: an empty document.
[[nodiscard]] GraphDocumentPtr buildGraph(OpenPairPtr pair, const GraphOptions &options);

} // namespace dblame::ui
