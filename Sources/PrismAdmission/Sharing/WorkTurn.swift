/// One turn of a connection: how much work its input may still cause, and how many bytes of answers it may leave unread.
public struct WorkTurn: Sendable {
  /// Cost units that are left: one for each byte that is read, and those of `Cost`.
  public private(set) var credit: Int
  private let unreadBytesMax: Int

  /// - Parameter unreadBytesMax: the turn ends when more bytes of answers wait.
  public init(credit: Int, unreadBytesMax: Int) { (self.credit, self.unreadBytesMax) = (credit, unreadBytesMax) }

  /// Has no bound: for input that is known to be small.
  public static var unbounded: WorkTurn { WorkTurn(credit: .max / 2, unreadBytesMax: .max) }

  /// Takes `units` off the credit.
  public mutating func spend(_ units: Int) { credit -= units }

  /// Whether the turn has credit left, and the answers are below the limit.
  public func goesOn(unreadBytes: Int) -> Bool { credit > 0 && unreadBytes <= unreadBytesMax }

  /// The same credit where the answers go into one response that is sent when it is whole.
  public func withoutUnreadLimit() -> WorkTurn { WorkTurn(credit: credit, unreadBytesMax: .max) }

  /// The cost of work beside a unit for each byte: the time that a byte of a report takes is the unit.
  public enum Cost {
    /// A line, of any length.
    public static let line = 64
    /// To be refused: a message is put together.
    public static let refusal = 1024
    /// A greeting, a question, a meta that collides with the common information, the head of an HTTP request.
    public static let question = 4096
    /// To read from a connection and write to it at all.
    public static let turn = 2048
  }
}
