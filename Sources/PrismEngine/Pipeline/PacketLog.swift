import PrismBase
import PrismPacket
import PrismProtocol
import PrismStore

/// The way of reports and packets in the log, at `log.level: debug`: admitted, claimed, sent, answered, settled. It has ids,
/// counts and statuses, never content or the collector's words.
struct PacketLog: Sendable {
  private let log: Logger

  init(_ log: Logger) { self.log = log }

  /// Writes a line for each batch of a commit.
  func admitted(_ batches: [ReportBatch], _ outcomes: [BatchOutcome]) {
    guard log.writes(.debug) else { return }
    for (batch, outcome) in zip(batches, outcomes) {
      var (duplicates, sampled, collapsed, refused) = (0, 0, 0, 0)
      for exception in outcome.exceptions {
        switch exception.what {
        case .duplicate: duplicates += 1
        case .sampledOut: sampled += 1
        case .collapsed: collapsed += 1
        case .refused: refused += 1
        }
      }
      log.debug(
        "reports admitted",
        [
          "namespace": batch.namespace.text, "user": String(batch.userID), "rows": String(batch.rows.count),
          "duplicates": String(duplicates), "sampled": String(sampled), "collapsed": String(collapsed),
          "refused": String(refused),
          "first": outcome.ids.first?.reportID(epoch: outcome.epoch) ?? "",
        ])
    }
  }

  /// Writes a line for each packet whose rows were claimed.
  func claimed(_ packets: [ClaimedPacket?]) {
    guard log.writes(.debug) else { return }
    for case let packet? in packets {
      write("packet claimed", packet.id, packet.namespace, packet.kind, ["rows": String(packet.itemCount)])
    }
  }

  func sent(_ packet: BuiltPacket) {
    guard log.writes(.debug) else { return }
    write(
      "packet sent", packet.context.packetID, packet.context.namespace, packet.context.kind,
      ["rows": String(packet.itemCount), "bytes": String(packet.contents.bodyBytes)])
  }

  func answered(_ packet: PacketContext, _ outcome: DeliveryOutcome) {
    guard log.writes(.debug) else { return }
    let (verdict, status) = Self.text(outcome.verdict)
    write(
      "packet answered", packet.packetID, packet.namespace, packet.kind,
      [
        "verdict": verdict, "status": status.map { String($0) } ?? "", "mayHaveLeft": String(outcome.mayHaveLeft),
        "roundTripMicroseconds": outcome.line.map { String(Int($0.roundTrip / .microseconds(1))) } ?? "",
        "leastMicroseconds": outcome.line.map { String(Int($0.least / .microseconds(1))) } ?? "",
      ])
  }

  /// Writes a line for each packet whose rows a commit deleted, released, divided or made dead letters.
  func settled(_ dispositions: [Disposition], _ namespace: NamespaceName, _ kind: RowKind) {
    guard log.writes(.debug) else { return }
    for disposition in dispositions {
      switch disposition {
      case .delivered(let id, let receipt):
        write("packet settled", id, namespace, kind, ["as": "delivered", "attempts": String(receipt.attempts)])
      case .split(let id, let first, let second):
        write(
          "packet settled", id, namespace, kind, ["as": "split", "first": "\(first)", "second": "\(second)"])
      case .dead(let id, let cause):
        write(
          "packet settled", id, namespace, kind,
          ["as": "dead", "status": String(cause.status), "attempts": String(cause.attempts)])
      case .released(let id): write("packet settled", id, namespace, kind, ["as": "released"])
      case .setBack(let id): write("packet settled", id, namespace, kind, ["as": "set back"])
      }
    }
  }

  private func write(
    _ message: String, _ packet: PacketID, _ namespace: NamespaceName, _ kind: RowKind, _ fields: Logger.Fields
  ) {
    log.debug(message, first: [("packet", "\(packet)"), ("namespace", namespace.text), ("kind", kind.name)], fields)
  }

  private static func text(_ verdict: DeliveryOutcome.Verdict) -> (name: String, status: Int?) {
    let name = if case .unprovenRefusal = verdict { "unprovenRefusal" } else { "\(verdict.counter)" }
    switch verdict {
    case .noReceipt(let status), .tooLarge(let status, _), .unacceptable(let status, _), .outOfOrder(let status, _, _),
      .misconfigured(let status, _, _), .unproven(let status), .unprovenRefusal(let status, _):
      return (name, status)
    case .unavailable(let status, _, _): return (name, status)
    case .unknownDictionary: return (name, 415)
    case .accepted, .tooOld, .cancelled, .carried: return (name, nil)
    }
  }
}
