import Glibc
import PrismConfig

#if FUZZ
  import FuzzSupport
#endif

/// Configuration files: the YAML parser, and one input in eight as the daemon's file and a namespace's, checked whole.
#if FUZZ
  @main
#endif
enum YAMLHarness: FuzzHarness {
  private static let folder: String = {
    let folder = "/dev/shm/prism-fuzz-yaml-\(getpid())"
    mkdir(folder, 0o700)
    mkdir(folder + "/namespaces.d", 0o700)
    return folder
  }()

  static func run(_ input: ArraySlice<UInt8>) {
    _ = YAMLParser.parse(Array(input))
    guard input.reduce(UInt8(0), &+) & 7 == 0 else { return }
    let parts = input.split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false)
    write(parts[0], to: folder + "/prismd.yaml")
    write(parts.count > 1 ? parts[1] : [], to: folder + "/namespaces.d/shop.yaml")
    let loader = ConfigurationLoader(
      path: folder + "/prismd.yaml", environment: ["HOME": "/nowhere"], identityCheck: nil)
    do { _ = try loader.load() } catch {
      for fault in error.faults { precondition(!fault.description.isEmpty) }
    }
  }

  private static func write(_ bytes: ArraySlice<UInt8>, to path: String) {
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    precondition(file >= 0)
    bytes.withUnsafeBytes { _ = Glibc.write(file, $0.baseAddress, $0.count) }
    close(file)
  }
}
