import PrismAdmission
import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol

/// Makes reports of the events of one message (docs/forward.md, "What becomes of an event"). Pure.
struct ForwardReports {
  /// Reports that one commit takes together.
  private static let partMax = (records: 1000, bytes: 512 * 1024)
  /// The member that names the tag where the type is another text.
  static let tagKey = "FLUENT_TAG"

  private let message: ForwardMessage
  private let type: String
  private let namespace: String
  private let source: SubmissionSource
  private let commonBytes: Int
  /// The beginning of all report ids; nil: the message has no chunk, and its events are stored as often as it comes.
  private let idPrefix: String?

  init(_ message: ForwardMessage, _ configuration: DaemonConfiguration.Forward, peer: ReportingPeer) {
    self.message = message
    // A longer tag is no type's name, and matches no pattern.
    let tag = message.tag.utf8.count > 256 ? "" : message.tag
    type = configuration.types.first { Glob.matches($0.glob, tag) }?.type.text ?? tag
    namespace = configuration.namespace ?? DaemonConfiguration.Forward.namespaceDefault
    let members = tag == type ? [] : [CommonMember(Self.tagKey, .string(String(tag.prefix(256))))]
    commonBytes = members.isEmpty ? 0 : 300
    source = SubmissionSource(peer: peer, members: members, sessionID: "forward")
    idPrefix = message.chunk.flatMap { chunk in
      (try? Hashing.sha256(chunk)).map { "f" + Hex.encode($0.prefix(16)) + "-" }
    }
  }

  /// Events that can't become reports.
  var unusableCount: Int { message.unusableCount }

  /// Bytes of memory that the reports need.
  var memoryBytes: Int {
    message.events.reduce(0) { $0 + 2 * $1.record.members.count + ($1.record.payload?.count ?? 0) }
  }

  /// `{"ack": chunk}`; empty if the sender wants no answer.
  var acknowledgement: [UInt8] {
    guard let chunk = message.chunk else { return [] }
    var result: [UInt8] = [0x81]
    result.append(msgpack: "ack")
    result.append(msgpack: String(decoding: chunk, as: UTF8.self))
    return result
  }

  /// In the order of the events; each part is small enough for one commit.
  static func parts(of messages: [ForwardReports]) -> [[InputReport]] {
    var (parts, bytes): ([[InputReport]], Int) = ([[]], 0)
    for message in messages {
      for (index, event) in message.message.events.enumerated() {
        if parts[parts.count - 1].count >= partMax.records || bytes >= partMax.bytes {
          parts.append([])
          bytes = 0
        }
        let report = message.report(event, index)
        parts[parts.count - 1].append(report)
        bytes += report.submission.bytes
      }
    }
    return parts.filter { !$0.isEmpty }
  }

  private func report(_ event: ForwardMessage.Event, _ index: Int) -> InputReport {
    let id = idPrefix.flatMap { ReportID($0 + String(index)) }
    let (type, namespace, source) = (type, namespace, source)
    return InputReport(members: event.record.members, commonBytes: commonBytes) { members in
      Submission(
        type, in: namespace, meta: [UInt8.openBrace] + members + [.closeBrace], payload: event.record.payload,
        createdTime: event.time, reportID: id, from: source)
    }
  }
}
