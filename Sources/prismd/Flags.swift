/// The command line: `prismd [--config PATH | --dev [DIR]] [--check-config] [--version] [--help]`.
struct Flags {
  enum Purpose { case run, checkConfig, develop, version, help }

  static let usage = """
    usage: prismd [--config PATH] [--check-config] [--version] [--help]
           prismd --dev [DIR]

      --config PATH    the daemon's file (/etc/prism/prismd.yaml); namespaces.d beside it
      --check-config   read everything, print every fault, start nothing
      --dev [DIR]      for trying it: the daemon with a collector beside it, everything in the folder DIR (./prism-dev),
                       which is made if it is missing; Ctrl-C ends both, and prismctl finds them by itself
      --version        print the version
      --help           this text

    Exit codes: 0, 64 usage, 69 a resource is not there, 73 cannot create, 78 configuration (sysexits.h).
    """

  var purpose = Purpose.run
  var configPath = "/etc/prism/prismd.yaml"
  /// Of `--dev`.
  var folder = "prism-dev"

  /// nil if the command line is invalid.
  init?(_ words: [String]) {
    var rest = words[...]
    while let word = rest.popFirst() {
      switch word {
      case "--check-config": purpose = .checkConfig
      case "--dev":
        purpose = .develop
        if let path = rest.first, !path.hasPrefix("-") { (folder, rest) = (path, rest.dropFirst()) }
      case _ where word.hasPrefix("--dev="): (purpose, folder) = (.develop, String(word.dropFirst("--dev=".count)))
      case "--version", "version": purpose = .version
      case "--help", "-h", "help": purpose = .help
      case "--config":
        guard let path = rest.popFirst() else { return nil }
        configPath = path
      case _ where word.hasPrefix("--config="): configPath = String(word.dropFirst("--config=".count))
      default: return nil
      }
    }
  }
}
