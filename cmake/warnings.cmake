# SPDX-License-Identifier: MIT
# One set of warnings for every target of ours; link tandem-warnings PRIVATE.
add_library(tandem-warnings INTERFACE)
target_compile_options(tandem-warnings INTERFACE
	-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith
	-Wwrite-strings -Wundef -Wformat=2 -Wvla -Wcast-align
	-fno-strict-aliasing -fno-common)
if(TANDEM_WERROR)
	target_compile_options(tandem-warnings INTERFACE -Werror)
endif()
target_compile_definitions(tandem-warnings INTERFACE _GNU_SOURCE _FILE_OFFSET_BITS=64)
target_include_directories(tandem-warnings INTERFACE ${CMAKE_BINARY_DIR}/generated)
