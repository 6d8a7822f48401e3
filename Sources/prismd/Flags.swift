import PrismBase

/// The command line: `prismd [check] [--config PATH | --dev [DIR]] [--version] [--help]`.
struct Flags {
  enum Purpose { case run, check, develop, version, help }

  static let options = [
    ArgumentOption("--config", "PATH", "the daemon's file (/etc/prism/prismd.yaml); namespaces.d beside it"),
    ArgumentOption(
      "--dev", "DIR",
      """
      for trying it: the daemon with a collector beside it, everything in the folder DIR (./prism-dev),
      which is made if it is missing; Ctrl-C ends both, and prismctl finds them by itself
      """, presence: .optional),
    ArgumentOption("--version", nil, "print the version"),
    ArgumentOption("--help", nil, "this text", shortName: "-h"),
  ]

  static let usage = """
    usage: prismd [--config PATH] [--version] [--help]
           prismd check [--config PATH]   reads everything, prints every fault, starts nothing
           prismd --dev [DIR]

    \(ArgumentOption.help(options, column: 19))

    Exit codes: 0, 64 usage, 69 a resource is not there, 73 cannot create, 78 configuration (sysexits.h).
    """

  var purpose = Purpose.run
  var configPath = "/etc/prism/prismd.yaml"
  /// Of `--dev`.
  var folder = "prism-dev"

  init(_ words: [String]) throws(ArgumentFault) {
    let arguments = try Arguments(words, options: Self.options)
    for option in arguments.given {
      switch option.name {
      case "--dev": (purpose, folder) = (.develop, option.value ?? folder)
      case "--version": purpose = .version
      case "--help": purpose = .help
      default: configPath = option.value ?? configPath
      }
    }
    for word in arguments.operands {
      switch word {
      case "check": purpose = .check
      case "version": purpose = .version
      case "help": purpose = .help
      default: throw .unexpectedWord(word)
      }
    }
  }
}
