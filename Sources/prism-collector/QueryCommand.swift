import Glibc
import PrismBase
import PrismCollector

/// `prism-collector query …`: prints stored reports, whether the collector runs or not.
enum QueryCommand {
  static let options = [
    ArgumentOption("--namespace", "NAME", "reports of this namespace"),
    ArgumentOption("--type", "TYPE", "reports of this type"),
    ArgumentOption("--device", "ID", "reports of this device"),
    ArgumentOption("--kind", "KIND", "meta or payload"),
    ArgumentOption("--since", "MS", "reports made at this time or later, milliseconds since 1970"),
    ArgumentOption("--until", "MS", "reports made before this time"),
    ArgumentOption(
      "--meta", "CONDITION", "a condition on a field of the meta, 'net.ms >= 100'; may be given several times"),
    ArgumentOption("--newest", nil, "the newest first"),
    ArgumentOption("--limit", "N", "the most reports (1000)"),
    ArgumentOption("--format", "FORMAT", "ndjson, a line of JSON each (the default), or csv"),
  ]

  static let usage = """
    usage: prism-collector query [OPTIONS] [--config PATH | the flags of prism-collector]

    \(ArgumentOption.help(options, column: 23))

    Exit codes: 0, 64 usage, 69 the store can't be read, 74 the output can't be written, 78 configuration.
    """

  /// - Parameter arguments: with the operand `query`. - Returns: the exit code.
  static func run(_ arguments: Arguments) async throws(Flags.Fault) -> Int32 {
    guard !arguments.contains("--help") else {
      print(usage)
      return 0
    }
    guard arguments.operands.count == 1 else {
      throw Flags.Fault(exitCode: 64, message: "\(ArgumentFault.unexpectedWord(arguments.operands[1]))\n\(usage)")
    }
    var query = ReportQuery()
    var isWritten = true
    do throws(ReportQuery.Fault) {
      for option in arguments.given where isOwn(option.name) {
        try query.take(String(option.name.dropFirst(2)), option.value ?? "")
      }
    } catch { throw Flags.Fault(exitCode: error.exitCode, message: error.message) }
    let options = try Flags(arguments).options
    do throws(ReportQuery.Fault) {
      try await query.run(options) { bytes in
        isWritten = StandardStreams.write(bytes[...], to: STDOUT_FILENO)
        return isWritten
      }
    } catch { throw Flags.Fault(exitCode: error.exitCode, message: error.message) }
    return isWritten ? 0 : 74
  }

  static func isOwn(_ name: String) -> Bool { options.contains { $0.name == name } }
}
