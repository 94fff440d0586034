# SPDX-License-Identifier: MIT

# What tests/sanitized builds a second time, with sanitizers: unit tests and fuzz replays.
add_custom_target(tandem-checked-programs)

# tandem_unit_test(NAME LIBRARIES...): one cmocka program, tests/unit/**/test_NAME.c in the current folder.
function(tandem_unit_test name)
	pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
	add_executable(test_${name} test_${name}.c)
	target_link_libraries(test_${name} PRIVATE tandem-warnings PkgConfig::CMOCKA ${ARGN})
	target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support)
	target_compile_definitions(test_${name} PRIVATE
		TEST_DATA_DIR="${PROJECT_SOURCE_DIR}/tests/data")
	add_dependencies(tandem-checked-programs test_${name})
	add_test(NAME unit.${name} COMMAND test_${name})
	set_tests_properties(unit.${name} PROPERTIES TIMEOUT 120)
endfunction()

# tandem_script_test(NAME SCRIPT [ARGS...]): a script of tests/; exit 77 is a skip, said as "SKIP: reason".
function(tandem_script_test name script)
	add_test(NAME ${name} COMMAND ${script} ${ARGN} WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
	set_tests_properties(${name} PROPERTIES
		SKIP_RETURN_CODE 77 TIMEOUT 300
		ENVIRONMENT "TANDEM_BUILD=${PROJECT_BINARY_DIR};TANDEM_SOURCE=${PROJECT_SOURCE_DIR};BABELTRACE_PLUGIN_PATH=${PROJECT_BINARY_DIR}/plugin")
endfunction()
