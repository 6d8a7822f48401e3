import PrismBase
import PrismProtocol

extension Checker {
  /// The file's values with the environment put in; nil when there is nothing to go on with.
  mutating func tree(_ environment: [String: String]) -> YAMLNode? {
    let bytes: [UInt8]
    filesRead.append(FilePath.absolute(file))
    do throws(FileFault) {
      bytes = try FileReading.read(file, bytesMax: YAMLParser.fileBytesMax).bytes
    } catch {
      fault(1, "file", "cannot be read: \(error.reason)")
      return nil
    }
    let (root, parseFaults) = YAMLParser.parse(bytes)
    for parseFault in parseFaults { fault(parseFault.line, "YAML", parseFault.message) }
    guard let root else { return parseFaults.isEmpty ? YAMLNode(line: 1, .mapping([])) : nil }
    var substitution = EnvironmentText(environment: environment)
    let resolved = substitution.resolved(root)
    for (line, key, message) in substitution.faults { fault(line, key, message) }
    return resolved
  }

  /// By line; those of one line as they were found.
  var sortedFaults: [ConfigurationFault] {
    faults.enumerated().sorted { ($0.element.line, $0.offset) < ($1.element.line, $1.offset) }.map(\.element)
  }
}
