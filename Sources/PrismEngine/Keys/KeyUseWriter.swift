import PrismBase
import PrismPacket

/// Writes the file of the counts, one content after another: a later one is never replaced by an earlier one.
actor KeyUseWriter {
  struct Content: Sendable {
    var written: [KeyFingerprint: (id: String, blocks: Int)]
    /// The end of the portion that the content was made for.
    var portion: Int
  }

  private let file: (any KeptFile)?
  private var isWriting = false
  private var waiting: [CheckedContinuation<Void, Never>] = []

  init(file: (any KeptFile)?) { self.file = file }

  func read() async throws(KeptFileFault) -> [UInt8]? { try await file?.read(bytesMax: KeyCountFile.bytesMax) }
  func setAside() async throws(KeptFileFault) -> String { try await file?.setAside() ?? "" }

  /// - Parameter content: asked for when it is its turn, so that it has what was written before it.
  /// - Parameter wrote: called when the content is on the disk, before another one is asked for.
  func write(
    _ content: @escaping @Sendable () -> Content, wrote: @escaping @Sendable (Content) -> Void
  ) async throws(KeptFileFault) {
    while isWriting { await withCheckedContinuation { waiting.append($0) } }
    isWriting = true
    defer {
      isWriting = false
      for waiter in waiting { waiter.resume() }
      waiting = []
    }
    let content = content()
    if let file {
      let bytes: [UInt8]
      do throws(PacketError) { bytes = try KeyCountFile.bytes(content.written) } catch {
        throw KeptFileFault("no checksum can be made: \(error.rawValue)")
      }
      try await file.write(bytes)
    }
    wrote(content)
  }
}
