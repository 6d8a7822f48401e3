import Glibc

exit(await runCollector(Array(CommandLine.arguments.dropFirst())))
