import CArguments
import PrismBase
import PrismLinux
import PrismProtocol

/// The command line: `prismd [check] [--config PATH | --dev [DIR]] [--version] [--help]`.
struct Flags {
  static let program = Program(
    "prismd", version: PrismVersion.line(of: "prismd", commit: String(cString: prism_commit())),
    commands: [
      Command(
        "check", "read everything, print every fault, start nothing",
        work: .early { line throws(Failure) in
          if configuration(Flags(line).configPath) == nil { throw Failure(Failure.configuration, "") }
        })
    ], root: "the daemon",
    options: [
      Command.Option("--config", "PATH", "the daemon's file (/etc/prism/prismd.yaml); namespaces.d beside it"),
      Command.Option(
        "--dev", "DIR",
        """
        for trying it: the daemon with a collector beside it, everything in the folder DIR (./prism-dev),
        which is made if it is missing; Ctrl-C ends both, and prismctl finds them by itself
        """, presence: .optional),
    ],
    exitCodes: [
      (0, "stopped as asked"), (Failure.usage, "the command line"),
      (Failure.unavailable, "a resource is not there"), (Failure.cannotCreate, "a file or a folder can't be made"),
      (Failure.configuration, "a configuration or a key is faulty"),
    ])

  let configPath: String
  /// Of `--dev`; nil: it was not given.
  let folder: String?

  init(_ line: Invocation) {
    configPath = line["--config"] ?? "/etc/prism/prismd.yaml"
    folder = line.has("--dev") ? line["--dev"] ?? "prism-dev" : nil
  }
}
