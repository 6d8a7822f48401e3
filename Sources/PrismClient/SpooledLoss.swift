import CPrism

/// Reports that a `SpooledClient` dropped.
public struct SpooledLoss: Sendable, Equatable {
  /// Why they are lost.
  public enum Cause: Sendable, Equatable {
    /// The queue in memory was full.
    case queueFull
    /// The spool was full, unwritable or not there while the daemon was away.
    case spoolFull
    /// The daemon refused them for good.
    case refused
    /// A file of the spool was damaged; `count` is in bytes.
    case damaged
  }

  /// Why they are lost.
  public let cause: Cause
  /// Reports since the last call with this cause.
  public let count: UInt64
  /// The daemon's code and message for `refused`, else an explanation; of one of them.
  public let code: String, message: String

  init?(_ loss: prism_loss, count: UInt64, code: String, message: String) {
    switch loss {
    case PRISM_LOSS_QUEUE: cause = .queueFull
    case PRISM_LOSS_SPOOL: cause = .spoolFull
    case PRISM_LOSS_REFUSED: cause = .refused
    case PRISM_LOSS_DAMAGED: cause = .damaged
    default: return nil
    }
    (self.count, self.code, self.message) = (count, code, message)
  }
}

/// Carries a function through C.
final class LossHandler: Sendable {
  private let handle: @Sendable (SpooledLoss) -> Void

  init(_ handle: @escaping @Sendable (SpooledLoss) -> Void) { self.handle = handle }

  static let called:
    @convention(c) (
      UnsafeMutableRawPointer?, prism_loss, UInt64, UnsafePointer<CChar>?, UnsafePointer<CChar>?
    ) -> Void = { context, loss, count, code, message in
      guard let context,
        let loss = SpooledLoss(
          loss, count: count, code: code.map { String(cString: $0) } ?? "",
          message: message.map { String(cString: $0) } ?? "")
      else { return }
      Unmanaged<LossHandler>.fromOpaque(context).takeUnretainedValue().handle(loss)
    }
}
