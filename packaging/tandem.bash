# SPDX-License-Identifier: MIT
# bash completion for tandem: commands and options come from the program's own --help, so they are always its own.

_tandem() {
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} program=${COMP_WORDS[0]} words

	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		words=$("$program" --help 2>/dev/null | awk '/^[A-Z].*:$/ { commands = /^Commands:/ } commands && /^  [a-z]/ { print $1 }')
		mapfile -t COMPREPLY < <(compgen -W "$words --help --version" -- "$current")
		return
	fi
	case $previous in
	--names)
		mapfile -t COMPREPLY < <(compgen -W "lttng ftrace" -- "$current")
		return
		;;
	--to)
		mapfile -t COMPREPLY < <(compgen -W "ctf json" -- "$current")
		return
		;;
	--stamps)
		mapfile -t COMPREPLY < <(compgen -W "user kernel" -- "$current")
		return
		;;
	esac
	if [[ $current == -* ]]; then
		words=$("$program" "${COMP_WORDS[1]}" --help 2>/dev/null |
			sed -n 's/^ \{1,8\}\(-.*\)/\1/p' | grep -oE -- '(^|[ ,|])--?[a-zA-Z][a-z-]*' | tr -d ' ,|' | sort -u)
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
	fi
	# Everything else is a path: bash completes it, also behind NAME=.
}
complete -o bashdefault -o default -F _tandem tandem
