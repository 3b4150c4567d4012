# bash completion of jsctl
_jsctl() {
    local line path
    local -a lines
    COMPREPLY=()
    mapfile -t lines < <(
        jsctl __complete --shell bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null
    )
    for line in "${lines[@]}"; do
        case "$line" in
            :file) compopt -o filenames 2>/dev/null
                mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(
                    compgen -f -- "${COMP_WORDS[COMP_CWORD]}"
                ) ;;
            :dir) compopt -o filenames 2>/dev/null
                mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(
                    compgen -d -- "${COMP_WORDS[COMP_CWORD]}"
                ) ;;
            *) printf -v path '%q' "${line%%$'\t'*}"
                COMPREPLY+=("$path") ;;
        esac
    done
}
complete -F _jsctl jsctl
