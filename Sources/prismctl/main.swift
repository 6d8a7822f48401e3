import Glibc

exit(await runPrismctl(Array(CommandLine.arguments.dropFirst())))
