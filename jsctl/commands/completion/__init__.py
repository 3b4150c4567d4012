"""`jsctl completion`: the declaration of the command."""

from jsctl.commands.toolkit.grammar.spec import Argument, Command

COMMAND = Command(
    "completion",
    "Prints the completion script of a shell",
    "completion.scripts:show",
    (
        Argument(
            "shell",
            "The shell",
            required=True,
            choices=("bash", "zsh", "fish", "powershell"),
        ),
    ),
    examples=(
        "jsctl completion bash",
        "jsctl completion zsh",
    ),
    details=(
        "It completes commands, flags, and what servers know: streams, consumers, buckets, keys, "
        "servers, subjects, accounts, contexts.",
        "  source <(jsctl completion bash)           in ~/.bashrc",
        "  source <(jsctl completion zsh)            in ~/.zshrc, after compinit",
        "  jsctl completion fish | source            in ~/.config/fish/config.fish",
        "  jsctl completion powershell | Out-String | Invoke-Expression   in $PROFILE",
    ),
)
