"""The scripts: each hands the words to `jsctl __complete` and its lines to the shell."""

from jsctl.commands.toolkit.invocation.call import Call

BASH = r"""# bash completion of jsctl
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
"""

ZSH = r"""#compdef jsctl
# zsh completion of jsctl
_jsctl() {
    local line value
    local -a lines shown plain
    lines=("${(@f)$(jsctl __complete --shell zsh -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    for line in "${lines[@]}"; do
        case "$line" in
            "") ;;
            :file) _files ;;
            :dir) _files -/ ;;
            *) value="${line%%$'\t'*}"
                plain+=("$value")
                if [[ "$line" == *$'\t'* ]]; then
                    shown+=("${value//:/\\:}:${line#*$'\t'}")
                else
                    shown+=("${value//:/\\:}")
                fi ;;
        esac
    done
    (( ${#shown} )) && _describe -V jsctl shown plain
    return 0
}
if [[ "${funcstack[1]}" == _jsctl ]]; then
    _jsctl "$@"
else
    compdef _jsctl jsctl
fi
"""

FISH = r"""# fish completion of jsctl
function __jsctl_complete
    set -l before (commandline -opc) (commandline -ct)
    for line in (jsctl __complete --shell fish -- $before[2..-1] 2>/dev/null)
        switch $line
            case :file
                __fish_complete_path (commandline -ct)
            case :dir
                __fish_complete_directories (commandline -ct)
            case '*'
                printf '%s\n' $line
        end
    end
end
complete -c jsctl -f -k -a '(__jsctl_complete)'
"""

POWERSHELL = r"""# PowerShell completion of jsctl
Register-ArgumentCompleter -Native -CommandName jsctl -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @($commandAst.CommandElements | Select-Object -Skip 1 |
        Where-Object { $_.Extent.EndOffset -lt $cursorPosition } |
        ForEach-Object { $_.Extent.Text })
    # A word of its own would be lost where it is empty: before 7.3 programs get no such words.
    $last = "--last=$wordToComplete"
    jsctl __complete --shell powershell $last -- @words 2>$null | ForEach-Object {
        $value, $help = $_ -split "`t", 2
        if ($value -eq ':file' -or $value -eq ':dir') { return }
        if (-not $help) { $help = $value }
        [System.Management.Automation.CompletionResult]::new(
            $value, $value, 'ParameterValue', $help)
    }
}
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH, "powershell": POWERSHELL}


def show(call: Call) -> None:
    """Prints the one that was asked for."""
    call.output.print(SCRIPTS[call.text("shell")].rstrip("\n"))
