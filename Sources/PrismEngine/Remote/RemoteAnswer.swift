import PrismConfig
import PrismPacket
import PrismProtocol

extension RemoteState.Event {
  /// The result of a question. Unpacks and parses up to 8 MiB: not for the cooperative pool.
  /// - Parameter now: milliseconds since 1970, for a `Retry-After` that is a date.
  init(_ outcome: PostAnswer.Outcome, publicKey: [UInt8]?, now: Int64) {
    switch outcome {
    case .failure(let failure, let detail):
      self = .failed(
        cause: "\(failure.rawValue): \(detail.cut(atBytes: 200))", isConfiguration: false, retryAfter: nil)
    case .response(200, let headers, let body):
      self = Self.opened(body, publicKey, store: headers[RemoteDocument.storeHeader.lowercased()])
    case .response(let status, let headers, let body):
      let retryAfter = headers["retry-after"].flatMap { RetryAfter.parse($0, serverDate: headers["date"], now: now) }
      let isTransient = [408, 425, 429].contains(status) || status >= 500
      self = .failed(
        cause: "status \(status)" + Self.explanation(status, body), isConfiguration: !isTransient,
        retryAfter: retryAfter)
    }
  }

  private static func opened(_ body: [UInt8], _ publicKey: [UInt8]?, store: String?) -> Self {
    do {
      var document = try RemoteDocument(parsing: try RemoteEnvelope.open(body, publicKey: publicKey))
      document.store = store?.cut(atBytes: 64)
      return .answered(document)
    } catch let faults as ConfigurationFaults {
      return .unreadable(reason: faults.reason)
    } catch {
      return .unreadable(reason: "\(error)")
    }
  }

  private static func explanation(_ status: Int, _ body: [UInt8]) -> String {
    if (300...399).contains(status) { return "; redirects are not followed, remote.url must be the place itself" }
    // A body that isn't JSON has no message.
    let message = (try? JSONValue(parsing: body.prefix(65_536), depthMax: 8, valuesMax: 100))?["message"]?.string
    return message.map { ": \($0.shownFromOutside)" } ?? ""
  }
}

extension ConfigurationFaults {
  /// For status and the server: as much as one can read.
  var reason: String { faults.map(\.description).joined(separator: "; ").cut(atBytes: 2000) }
}
