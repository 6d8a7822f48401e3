import Glibc
import PrismBase
import PrismProtocol

/// One line of JSON a report: as `GET /reports` shows it, with the payload in base64.
actor NDJSONOutput: ReportOutput {
  private let executor = DispatchQueueExecutor(label: "prism.collector.ndjson")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// nil: standard output.
  private var file: RotatingFile?

  init(_ options: RotatingFile.Options?, name: String, time: any TimeSource) {
    file = options.map { RotatingFile($0, name: name, time: time) }
  }

  func deliver(_ reports: [StoredReport]) throws(OutputFailure) -> [RefusedReport] {
    var text: [UInt8] = []
    for report in reports {
      text += report.jsonLine
      text.append(UInt8(ascii: "\n"))
    }
    if file != nil { try file?.append(text) } else { try Self.print(text) }
    return []
  }

  func close() { file?.close() }

  private static func print(_ text: [UInt8]) throws(OutputFailure) {
    var written = 0
    while written < text.count {
      let count = text.withUnsafeBytes { write(STDOUT_FILENO, $0.baseAddress! + written, $0.count - written) }
      guard count > 0 || errno == EINTR || errno == EAGAIN else {
        throw OutputFailure("standard output can't be written: \(String(cString: strerror(errno)))")
      }
      if count < 0, errno == EAGAIN {
        var descriptor = pollfd(fd: STDOUT_FILENO, events: Int16(POLLOUT), revents: 0)
        poll(&descriptor, 1, 1000)
      }
      written += max(0, count)
    }
  }
}

extension StoredReport {
  /// As `GET /reports` shows it, with the payload in base64, without a line feed.
  var jsonLine: [UInt8] {
    guard let payload else { return jsonText }
    return jsonText.dropLast() + Array(#","payload":"\#(Base64.encode(payload))"}"#.utf8)
  }
}
