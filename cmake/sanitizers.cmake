# SPDX-License-Identifier: MIT
# TANDEM_SANITIZE=address,undefined or thread: for everything that is built.
if(TANDEM_SANITIZE)
	add_compile_options(-fsanitize=${TANDEM_SANITIZE} -fno-omit-frame-pointer -g)
	add_link_options(-fsanitize=${TANDEM_SANITIZE})
	if(TANDEM_SANITIZE MATCHES undefined)
		add_compile_options(-fno-sanitize-recover=undefined)
	endif()
endif()
if(TANDEM_FUZZ)
	# Coverage in every library, so that libFuzzer sees into it.
	add_compile_options(-fsanitize=fuzzer-no-link)
endif()
