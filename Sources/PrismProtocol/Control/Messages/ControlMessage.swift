/// A JSON object of the control protocol as a value: prismd writes it and prismctl reads it by the same table of fields.
///
/// Reading never fails, because programs of different versions talk to each other. Unknown keys are ignored, and a
/// field that is missing or of another type keeps the value of `init()`.
public protocol ControlMessage: ControlValue {
  init()
  /// In the order in which they are written (docs/control-protocol.md). Fields are only ever added.
  static var fields: [ControlField<Self>] { get }
}

extension ControlMessage {
  /// The fields in their order, as members of a JSON object.
  public var members: [JSONValue.Member] {
    Self.fields.compactMap { field in field.write(self).map { JSONValue.Member(field.key, $0) } }
  }

  public var controlJSON: JSONValue { .object(members) }

  public init(controlJSON json: JSONValue) {
    self.init()
    for field in Self.fields { if let value = json[field.key] { field.read(value, &self) } }
  }
}

/// One member of a message.
public struct ControlField<Message: Sendable>: Sendable {
  let key: String
  /// nil: the member is left out.
  let write: @Sendable (Message) -> JSONValue?
  let read: @Sendable (JSONValue, inout Message) -> Void

  /// Always written; nil as `null`.
  public init<Value: ControlValue>(_ key: String, _ path: any WritableKeyPath<Message, Value> & Sendable) {
    self.key = key
    write = { $0[keyPath: path].controlJSON }
    read = { json, message in if let value = Value(controlJSON: json) { message[keyPath: path] = value } }
  }

  /// Left out if nil.
  public init<Value: ControlValue>(ifPresent key: String, _ path: any WritableKeyPath<Message, Value?> & Sendable) {
    self.key = key
    write = { $0[keyPath: path]?.controlJSON }
    read = { json, message in if let value = Value(controlJSON: json) { message[keyPath: path] = value } }
  }
}

/// A value that a member of a message may have.
public protocol ControlValue: Sendable, Equatable {
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

extension Int: ControlValue {
  public var controlJSON: JSONValue { .int(self) }
  public init?(controlJSON json: JSONValue) {
    guard let number = json.int else { return nil }
    self = number
  }
}

extension Int64: ControlValue {
  public var controlJSON: JSONValue { .int(self) }
  public init?(controlJSON json: JSONValue) {
    guard let number = json.int else { return nil }
    self.init(number)
  }
}

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
  public struct Element: Sendable, Equatable {
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
