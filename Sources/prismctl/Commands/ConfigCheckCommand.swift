import Glibc
import PrismConfig

extension Command {
  static let configCheck = Command(
    words: ["config", "check"], summary: "read a configuration and print every fault of it; starts nothing",
    operands: ["PATH"], example: "prismctl config check /etc/prism/prismd.yaml"
  ) { invocation throws(Failure) in
    let loader = ConfigurationLoader(path: invocation.operands[0], environment: environment())
    do throws(ConfigurationFaults) { _ = try loader.load() } catch {
      for fault in error.faults { print(fault) }
      throw Failure(Failure.configuration, "")
    }
  }

  private static func environment() -> [String: String] {
    var result: [String: String] = [:]
    var entry = environ
    while let text = entry.pointee {
      let parts = String(cString: text).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      if parts.count == 2 { result[String(parts[0])] = String(parts[1]) }
      entry += 1
    }
    return result
  }
}
