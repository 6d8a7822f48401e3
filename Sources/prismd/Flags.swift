/// The command line: `prismd [--config PATH] [--check-config] [--version] [--help]`.
struct Flags {
  enum Purpose { case run, checkConfig, version, help }

  static let usage = """
    usage: prismd [--config PATH] [--check-config] [--version] [--help]

      --config PATH    the daemon's file (/etc/prism/prismd.yaml); namespaces.d beside it
      --check-config   read everything, print every fault, start nothing
      --version        print the version
      --help           this text

    Exit codes: 0, 64 usage, 69 a resource is not there, 73 cannot create, 78 configuration (sysexits.h).
    """

  var purpose = Purpose.run
  var configPath = "/etc/prism/prismd.yaml"

  /// nil for a command line that is none.
  init?(_ words: [String]) {
    var rest = words[...]
    while let word = rest.popFirst() {
      switch word {
      case "--check-config": purpose = .checkConfig
      case "--version": purpose = .version
      case "--help": purpose = .help
      case "--config":
        guard let path = rest.popFirst() else { return nil }
        configPath = path
      case _ where word.hasPrefix("--config="): configPath = String(word.dropFirst("--config=".count))
      default: return nil
      }
    }
  }
}
