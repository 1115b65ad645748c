# SPDX-License-Identifier: GPL-3.0-or-later
# Proof that layers.cmake can fail: each line below (an include, or code) breaks one rule, alone in a source folder.
# Run as: cmake -DLAYERS=layers.cmake -DWORK_DIR=DIR -P layers_catch.cmake
cmake_minimum_required(VERSION 3.24)
set(cases
    "core/a.h|<nlohmann/json.hpp>" "core/a.h|<ATen/core/Tensor.h>" "core/a.h|\"core/engine/metric.h\"" "core/a.cpp|<QString>"
    "core/a.cpp|<torch/csrc/api/include/torch/types.h>" "core/a.cpp|<spdlog/spdlog.h>" "core/a.cpp|std::jthread worker(work)" "core/a.cpp|\"ui/theme.h\""
    "core/engine/a.cpp|<QtCore/QString>" "core/engine/a.cpp|std::mutex m_lock" "ui/a.cpp|<ATen/core/Tensor.h>" "ui/a.cpp|\"core/readers/readers.h\""
    "ui/a.cpp|<QThread>" "ui/a.cpp|\"qcustomplot.h\"" "ui/a.h|\"ui/qcp.h\"" "app/main.cpp|<QApplication>" "app/gui_main.cpp|<c10/util/Exception.h>")
set(fine
    "core/a.h|<vector>" "core/a.h|<tl/expected.hpp>" "core/a.h|\"core/error.h\"" "core/a.cpp|<nlohmann/json.hpp>" "core/log.cpp|<spdlog/spdlog.h>"
    "core/engine/a.cpp|<ATen/core/Tensor.h>"
    "core/engine/a.cpp|const int n = std::thread::hardware_concurrency()" "core/engine/a.cpp|std::lock_guard<std::mutex> lock(generator.mutex())"
    "core/log.cpp|std::mutex lock" "ui/a.cpp|<QString>" "ui/a.cpp|\"ui/qcp.h\"" "ui/qcp.h|\"qcustomplot.h\"" "ui/runner.cpp|<thread>"
    "app/gui_main.cpp|<QApplication>" "tests/ui/a.cpp|<QTest>")

function(run_case case expected)
    string(REPLACE "|" ";" parts "${case}")
    list(GET parts 0 file)
    list(GET parts 1 include)
    file(REMOVE_RECURSE "${WORK_DIR}")
    if(include MATCHES "^[<\"]")
        set(include "#include ${include}")
    endif()
    file(WRITE "${WORK_DIR}/${file}" "#include <vector>\n${include}\n")
    execute_process(COMMAND "${CMAKE_COMMAND}" "-DDBLAME_SOURCE_DIR=${WORK_DIR}" -P "${LAYERS}" RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE said)
    if(expected STREQUAL "breach" AND (status EQUAL 0 OR NOT said MATCHES "layers are breached"))
        message(SEND_ERROR "not caught: ${file}: ${include}\n${said}")
    elseif(expected STREQUAL "fine" AND NOT status EQUAL 0)
        message(SEND_ERROR "a false alarm: ${file}: ${include}\n${said}")
    endif()
endfunction()

foreach(case IN LISTS cases)
    run_case("${case}" breach)
endforeach()
foreach(case IN LISTS fine)
    run_case("${case}" fine)
endforeach()
file(REMOVE_RECURSE "${WORK_DIR}")
