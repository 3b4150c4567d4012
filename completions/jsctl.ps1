# PowerShell completion of jsctl
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
