import Synchronization

/// Keeps every POST on its way until it is opened.
public final class AnswerGate: Sendable {
  private let isOpen = Mutex(false)

  public init() {}

  public func open() { isOpen.withLock { $0 = true } }

  /// A transport that accepts what the gate lets through.
  public var transport: ScriptedTransport {
    ScriptedTransport { request in
      while !self.isOpen.withLock({ $0 }) { await Task.yield() }
      return await ScriptedTransport.accept(request)
    }
  }
}
