/// A JSON object of the control protocol as a value: prismd writes it and prismctl reads it by the same properties.
///
/// Members are written in the order of the properties (docs/control-protocol.md); nil is `null`. Properties are only
/// ever added. Reading never fails, because programs of different versions talk to each other. Unknown keys are
/// ignored, and a member that is missing or of another type keeps the value of `init()`.
public protocol ControlMessage: ControlValue {
  init()
  /// Whether the member is left out if it is nil.
  static func leavesOut(_ key: String) -> Bool
}

extension ControlMessage {
  public static func leavesOut(_ key: String) -> Bool { false }

  /// The properties in their order, as members of a JSON object.
  public var members: [JSONValue.Member] {
    let writer = MessageWriter(leavesOut: Self.leavesOut)
    do { try encode(to: writer) } catch { preconditionFailure("\(Self.self) has a member that is no value: \(error)") }
    return writer.members
  }

  public var controlJSON: JSONValue { .object(members) }

  public init(controlJSON json: JSONValue) {
    self = (try? Self(from: MessageReader(json: json, defaults: { Self().controlJSON }))) ?? Self()
  }
}

/// A value that a member of a message may have.
public protocol ControlValue: Codable, Sendable, Equatable {
  var controlJSON: JSONValue { get }
  /// nil if `json` is of another type.
  init?(controlJSON json: JSONValue)
}

extension ControlValue where Self: RawRepresentable<String> {
  public var controlJSON: JSONValue { .string(rawValue) }
  public init?(controlJSON json: JSONValue) {
    guard let value = json.string.flatMap(Self.init(rawValue:)) else { return nil }
    self = value
  }
}

extension String: ControlValue {
  public var controlJSON: JSONValue { .string(self) }
  public init?(controlJSON json: JSONValue) {
    guard let text = json.string else { return nil }
    self = text
  }
}

extension ControlValue where Self: FixedWidthInteger {
  public var controlJSON: JSONValue { .int(self) }
  public init?(controlJSON json: JSONValue) {
    guard let number = json.int else { return nil }
    self.init(exactly: number)
  }
}

extension Int: ControlValue {}
extension Int64: ControlValue {}

extension Bool: ControlValue {
  public var controlJSON: JSONValue { .bool(self) }
  public init?(controlJSON json: JSONValue) {
    guard let value = json.bool else { return nil }
    self = value
  }
}

extension JSONValue: ControlValue {
  /// An object of values that are no trees yet; nil is null.
  public init(_ members: KeyValuePairs<String, any ControlValue>) {
    self = .object(members.map { Member($0.key, $0.value.controlJSON) })
  }

  public var controlJSON: JSONValue { self }
  public init?(controlJSON json: JSONValue) { self = json }
}

extension Optional: ControlValue where Wrapped: ControlValue {
  public var controlJSON: JSONValue { self?.controlJSON ?? .null }
  public init?(controlJSON json: JSONValue) { self = json.isNull ? nil : Wrapped(controlJSON: json) }
}

extension Array: ControlValue where Element: ControlValue {
  public var controlJSON: JSONValue { .array(map(\.controlJSON)) }
  public init?(controlJSON json: JSONValue) {
    guard let elements = json.array else { return nil }
    self = elements.compactMap { Element(controlJSON: $0) }
  }
}

/// Values by name in the order in which they are written: a JSON object whose keys are names.
public struct NamedValues<Value: ControlValue>: ControlValue, RandomAccessCollection {
  /// A name with its value.
  public struct Element: Codable, Sendable, Equatable {
    /// The member's key.
    public var name: String
    /// The member's value.
    public var value: Value
    public init(_ name: String, _ value: Value) { (self.name, self.value) = (name, value) }
  }

  private var elements: [Element]
  public var startIndex: Int { elements.startIndex }
  public var endIndex: Int { elements.endIndex }

  public init(_ elements: [Element] = []) { self.elements = elements }

  public subscript(position: Int) -> Element { elements[position] }

  /// nil if there is no such name.
  public subscript(name: String) -> Value? { elements.first { $0.name == name }?.value }

  public var controlJSON: JSONValue { .object(elements.map { .init($0.name, $0.value.controlJSON) }) }

  public init?(controlJSON json: JSONValue) {
    guard let members = json.object else { return nil }
    elements = members.compactMap { member in
      Value(controlJSON: member.value).map { Element(member.key, $0) }
    }
  }
}

extension Ledger: ControlValue {
  /// `stored`, then each account.
  public var controlJSON: JSONValue {
    .object([.init("stored", .int(stored))] + Account.allCases.map { .init($0.rawValue, .int(self[$0])) })
  }

  public init?(controlJSON json: JSONValue) {
    guard json.object != nil else { return nil }
    self.init()
    stored = json["stored"]?.int ?? 0
    for account in Account.allCases { self[account] = json[account.rawValue]?.int ?? 0 }
  }
}
