import PrismProtocol

/// Takes out of samples what fewer than `devicesMin` devices sent. Each device gets the dictionary, and must learn
/// nothing from it that one other device alone reported.
struct SampleScreen {
  /// The devices that sent a piece, up to the number that is needed.
  private struct Senders {
    var first: [Int] = []

    mutating func add(_ sender: Int, countMax: Int) {
      if first.count < countMax, !first.contains(sender) { first.append(sender) }
    }
  }

  private let devicesMin: Int
  private var senders: [Int: Senders] = [:]
  private let values: [JSONValue]

  /// Lines that are no JSON are left out.
  init(_ samples: [DictionarySample], devicesMin: Int) {
    self.devicesMin = devicesMin
    var values: [JSONValue] = []
    var senders: [Int: Senders] = [:]
    for sample in samples {
      guard let value = try? JSONValue(parsing: sample.line) else { continue }
      values.append(value)
      Self.eachPiece(of: value, at: 0) { senders[$0, default: Senders()].add(sample.sender, countMax: devicesMin) }
    }
    (self.values, self.senders) = (values, senders)
  }

  /// The samples: members, texts and numbers that few devices sent are empty or missing.
  var lines: [[UInt8]] { values.map { screened($0, at: 0).bytes } }

  private func isShared(_ piece: Int) -> Bool { (senders[piece]?.first.count ?? 0) >= devicesMin }

  private func screened(_ value: JSONValue, at place: Int) -> JSONValue {
    switch value {
    case .null, .bool: value
    case .number(let text): isShared(Self.piece(place, text)) ? value : .number("0")
    case .string(let text): isShared(Self.piece(place, text)) ? value : .string("")
    case .array(let elements): .array(elements.map { screened($0, at: place) })
    case .object(let members):
      .object(
        members.compactMap { member in
          let inner = Self.piece(place, member.key)
          return isShared(inner) ? .init(member.key, screened(member.value, at: inner)) : nil
        })
    }
  }

  /// A key, a text or a number at its place, as a number that can't be guessed outside of this process.
  private static func piece(_ place: Int, _ text: String) -> Int {
    var hasher = Hasher()
    hasher.combine(place)
    hasher.combine(text)
    return hasher.finalize()
  }

  private static func eachPiece(of value: JSONValue, at place: Int, _ body: (Int) -> Void) {
    switch value {
    case .null, .bool: break
    case .number(let text), .string(let text): body(piece(place, text))
    case .array(let elements): for element in elements { eachPiece(of: element, at: place, body) }
    case .object(let members):
      for member in members {
        let inner = piece(place, member.key)
        body(inner)
        eachPiece(of: member.value, at: inner, body)
      }
    }
  }
}
