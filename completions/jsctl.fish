# fish completion of jsctl
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
