# Warnings and sanitizers: dblame_options is linked by every target of ours.
add_library(dblame_options INTERFACE)
target_include_directories(dblame_options INTERFACE "${CMAKE_SOURCE_DIR}")
target_compile_options(dblame_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow=local -Wnon-virtual-dtor -Woverloaded-virtual)
if(DBLAME_SANITIZE)
    target_compile_options(dblame_options INTERFACE -fsanitize=${DBLAME_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(dblame_options INTERFACE -fsanitize=${DBLAME_SANITIZE})
endif()
