// SPDX-License-Identifier: GPL-3.0-or-later
//
// dblame inspect MODEL: what the file holds, what of it can run, and what is wrong with it.
#include <algorithm>
#include <map>

#include "app/commands.h"
#include "app/inspection.h"
#include "app/output_files.h"
#include "app/terminal.h"
#include "core/engine.h"
#include "core/graph_text.h"

namespace dblame
{

namespace
{

struct InspectOptions {
    std::string model, json;
    bool graph = false;
};

int runInspect(const InspectOptions &options, std::stop_token stop)
{
    if (const auto checked = checkOutputs({{"--json", options.json}}, {options.model}); !checked)
        return failed(checked.error());
    ProgressBar bar;
    const auto engine = loadEngine();
    if (!engine)
        return failed(engine.error());
    const auto model = (*engine)->openModel(options.model, bar.callback(options.model), stop);
    bar.clear();
    if (!model)
        return failed(model.error());
    const Inspection inspection = inspect(**model, options.graph);
    const bool toStdout = options.json.empty();
    const auto text = toStdout ? inspectionText(inspection) : inspectionJson(inspection);
    if (const auto written = deliver(toStdout ? "-" : options.json, text); !written)
        return failed(written.error());
    return kDone;
}

} // namespace

void addInspect(CLI::App &program, Command &chosen)
{
    auto *command = program.add_subcommand(
        "inspect", "Show a model's signature, quantization sites and operators, and what cannot run");
    const auto options = std::make_shared<InspectOptions>();
    command->add_option("model", options->model, "FILE, or FILE#program where an archive holds several")
        ->required()
        ->type_name("MODEL");
    command->add_flag("--graph", options->graph, "The graph as text, one line per node");
    command->add_option("--json", options->json, "Write all of it as JSON; - is stdout")->type_name("FILE");
    command->callback(
        [options, &chosen] { chosen = [options](std::stop_token stop) { return runInspect(*options, stop); }; });
}

} // namespace dblame
