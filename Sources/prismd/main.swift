import Glibc

exit(await runPrismd(Array(CommandLine.arguments.dropFirst())))
