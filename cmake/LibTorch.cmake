# LibTorch through imported targets of our own: find_package(Torch) wants a CUDA toolkit beside a CUDA wheel.
# torch's include folder comes with -idirafter: it carries its own fmt, which must not shadow the system's.
if(NOT DBLAME_LIBTORCH)
    if(DEFINED ENV{DBLAME_LIBTORCH})
        set(DBLAME_LIBTORCH "$ENV{DBLAME_LIBTORCH}" CACHE PATH "" FORCE)
    elseif(EXISTS "${CMAKE_SOURCE_DIR}/build/libtorch.path")
        file(STRINGS "${CMAKE_SOURCE_DIR}/build/libtorch.path" _dblame_libtorch LIMIT_COUNT 1)
        set(DBLAME_LIBTORCH "${_dblame_libtorch}" CACHE PATH "" FORCE)
    endif()
endif()
if(NOT EXISTS "${DBLAME_LIBTORCH}/include/ATen/ATen.h" OR NOT EXISTS "${DBLAME_LIBTORCH}/lib/libtorch_cpu.so")
    message(FATAL_ERROR "LibTorch not found (DBLAME_LIBTORCH='${DBLAME_LIBTORCH}'). Run packaging/setup.sh, or give "
                        "-DDBLAME_LIBTORCH=DIR with DIR/include and DIR/lib, for instance the folder of the torch Python package.")
endif()
foreach(_lib c10 torch_cpu)
    add_library(libtorch::${_lib} SHARED IMPORTED)
    set_target_properties(libtorch::${_lib} PROPERTIES IMPORTED_LOCATION "${DBLAME_LIBTORCH}/lib/lib${_lib}.so" IMPORTED_NO_SONAME OFF)
endforeach()
add_library(dblame_libtorch INTERFACE)
target_compile_options(dblame_libtorch INTERFACE
    "SHELL:-idirafter ${DBLAME_LIBTORCH}/include" "SHELL:-idirafter ${DBLAME_LIBTORCH}/include/torch/csrc/api/include"
    -Wno-unused-parameter -Wno-shadow -Wno-pedantic)
target_link_libraries(dblame_libtorch INTERFACE libtorch::torch_cpu libtorch::c10)
# libtorch_cpu.so of a CUDA wheel refers to libraries that need not be installed to link.
target_link_options(dblame_libtorch INTERFACE -Wl,--allow-shlib-undefined)
