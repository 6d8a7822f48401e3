import PrismProtocol

/// A `Prism-Ledger` as it came: what a sender stored of one namespace and kind, and where it went (docs/packet.md).
struct DeviceLedger: Sendable, Equatable {
  static let accounts = ["delivered", "expired", "evicted", "cleared", "dead", "removed", "kept", "overwritten"]
  /// Reports in these are lost.
  static let lostAccounts = ["expired", "evicted", "cleared", "dead", "removed"]

  private(set) var epoch = ""
  private(set) var stored = 0
  private(set) var counts: [String: Int] = [:]
  /// Rows of the packet itself, which the sender counts as waiting until it has the receipt.
  private(set) var carried = 0

  /// nil: the text is no ledger.
  init?(_ text: String) {
    // Bytes: a list of devices reads some 100,000 of them.
    for part in text.utf8.split(separator: UInt8(ascii: ";")) {
      guard let sign = part.firstIndex(of: UInt8(ascii: "=")), sign > part.startIndex else { return nil }
      let (name, value) = (Substring(part[..<sign]), Substring(part[part.index(after: sign)...]))
      guard !value.isEmpty else { return nil }
      if name == "epoch" {
        epoch = String(value)
      } else if let count = Int(value), (0...Int(Int32.max) * 1024).contains(count) {
        switch name {
        case "stored": stored = count
        case "carried": carried = count
        default: counts[String(name)] = count
        }
      }
    }
  }

  /// Reports that were neither delivered nor lost when the packet was made, without those of the packet.
  var waiting: Int { max(0, unsettled - carried) }
  /// Below 0 where the accounts don't balance.
  private var unsettled: Int { Self.accounts.reduce(stored) { $0 - counts[$1, default: 0] } }
  var lost: Int { Self.lostAccounts.reduce(0) { $0 + counts[$1, default: 0] } }

  /// nil: it balances.
  var difference: String? {
    unsettled < 0 ? "the accounts have \(-unsettled) reports more than were stored" : nil
  }

  var json: JSONValue {
    var members = [JSONValue.Member("epoch", .string(epoch)), JSONValue.Member("stored", .int(stored))]
    members += Self.accounts.map { JSONValue.Member($0, .int(counts[$0, default: 0])) }
    members.append(JSONValue.Member("waiting", .int(waiting)))
    return .object(members)
  }
}
