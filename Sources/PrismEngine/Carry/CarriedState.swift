/// The effect on its packet of an answer that came back in a file.
enum CarriedState: Sendable, Equatable {
  case delivered
  /// It has its receipt, and a packet before it has no receipt yet: it is settled behind that one.
  case waits
  /// Its rows became two packets, to find the row that the collector refuses: carry them again.
  case split
  case dead
  /// Nothing of this packet is here: it was settled before, or it is another machine's.
  case unknown
  /// It decided nothing, for this reason.
  case kept(String)

  /// - Parameter isHere: the packet still has its rows.
  /// - Parameter rows: of the packet.
  init(_ verdict: DeliveryOutcome.Verdict, isHere: Bool, rows: Int) {
    guard isHere else {
      switch verdict {
      case .accepted: self = .delivered
      case .tooOld: self = .dead
      default: self = rows > 1 ? .split : .dead
      }
      return
    }
    switch verdict {
    case .accepted: self = .waits
    case .noReceipt: self = .kept("its receipt is missing or proves nothing")
    case .tooOld(let text, _), .unavailable(_, let text, _), .outOfOrder(_, let text, _),
      .misconfigured(_, _, let text):
      self = .kept(text)
    case .unprovenRefusal(let status, _): self = .kept("status \(status) without the collector's proof")
    case .tooLarge, .unacceptable, .unknownDictionary, .unproven, .cancelled, .carried:
      self = .kept("the collector has not taken it")
    }
  }

  /// In the control protocol.
  var name: String { if case .kept = self { "kept" } else { "\(self)" } }

  var reason: String? { if case .kept(let text) = self { text } else { nil } }
}
