import PrismBase
import PrismPacket

/// The key of a group of crashes: the common parts of crashes with one cause (docs/page.md, "Groups of crashes").
struct CrashFingerprint: Sendable, Hashable {
  private static let partsMax = 6

  /// The details that operators can split a group by, beside those of each key.
  enum Detail: String, Sendable, CaseIterable {
    /// The words of the crash, also where there is a stack.
    case words
    /// All functions of the app, and not the innermost ones only.
    case frames
  }

  /// 16 hexadecimal digits.
  let text: String

  /// - Parameter text: of another fingerprint.
  init(text: String) { self.text = text }

  /// - Parameters:
  ///   - text: the words of the crash. They are part of the key only if there is no frame.
  ///   - frames: the innermost first.
  ///   - detail: more that is part of the key.
  init(type: String, text: String, frames: [CrashFrame], detail: Detail? = nil) {
    let parts = Self.parts(frames, limit: detail == .frames ? CrashStack.framesMax : Self.partsMax)
    var key = [type] + (parts.isEmpty ? ["", CrashText.plain(text)] : parts)
    if let detail { key += ["", detail.rawValue] + (detail == .words ? [CrashText.plain(text)] : []) }
    let hash = (try? Hashing.sha256(Array(key.joined(separator: "\n").utf8))) ?? []
    self.text = Hex.encode(Array(hash.prefix(8)))
  }

  /// The names of the app's innermost functions. A frame without a name counts by its place in the module, unless the module's
  /// innermost frame has a name. A function that calls itself counts once.
  static func parts(_ frames: [CrashFrame], limit: Int = partsMax) -> [String] {
    let own = CrashFrameTable.standard.appFrames(frames)
    var hasNames: [String: Bool] = [:]
    for frame in own where frame.module.map({ hasNames[$0] == nil }) == true {
      hasNames[frame.module ?? ""] = frame.function != nil
    }
    var parts: [String] = []
    for frame in own {
      guard let part = part(of: frame, hasNames), part != parts.last else { continue }
      parts.append(part)
      if parts.count == limit { break }
    }
    return parts
  }

  private static func part(of frame: CrashFrame, _ hasNames: [String: Bool]) -> String? {
    let file = frame.file.map { CrashFrame.baseName($0[...]) }
    if let function = frame.function {
      return function.contains("<") && function.hasSuffix(">") ? "\(function) \(file ?? "")" : function
    }
    guard let module = frame.module, let offset = frame.offset else { return file }
    return hasNames[module] == true ? nil : "\(frame.buildID ?? module)+0x\(String(offset, radix: 16))"
  }
}
