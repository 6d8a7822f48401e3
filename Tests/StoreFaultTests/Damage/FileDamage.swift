import Glibc
import PrismTestSupport

/// One way in which a file is not what was written.
enum FileDamage: CustomStringConvertible {
  case flip(at: Int, bit: Int)
  /// Some bits within one page.
  case flips(at: Int, count: Int)
  case zeroes(at: Int, count: Int)
  case noise(at: Int, count: Int)
  case cut(to: Int)
  case foreignText
  case empty

  /// Drawn for a file of `size` bytes.
  init(size: Int, using random: inout SeededRandom) {
    let at = Int.random(in: 0..<max(1, size), using: &random)
    switch Int.random(in: 0..<100, using: &random) {
    case ..<50: self = .flip(at: at, bit: Int.random(in: 0..<8, using: &random))
    case ..<65: self = .flips(at: at / 4096 * 4096, count: Int.random(in: 2...64, using: &random))
    case ..<75: self = .zeroes(at: at / 512 * 512, count: 512 << Int.random(in: 0..<5, using: &random))
    case ..<85: self = .noise(at: at / 512 * 512, count: 512 << Int.random(in: 0..<5, using: &random))
    case ..<97: self = .cut(to: at)
    case ..<99: self = .foreignText
    default: self = .empty
    }
  }

  var description: String {
    switch self {
    case .flip(let at, let bit): "bit \(bit) of byte \(at) flipped"
    case .flips(let at, let count): "\(count) bits of the page at \(at) flipped"
    case .zeroes(let at, let count): "\(count) zeroes at \(at)"
    case .noise(let at, let count): "\(count) bytes of noise at \(at)"
    case .cut(let size): "cut to \(size) bytes"
    case .foreignText: "replaced by a text"
    case .empty: "emptied"
    }
  }

  /// Whether at most a page of it is harmed.
  var isSmall: Bool {
    switch self {
    case .flip, .flips: true
    case .zeroes, .noise, .cut, .foreignText, .empty: false
    }
  }

  var isCut: Bool {
    switch self {
    case .cut, .empty: true
    case .flip, .flips, .zeroes, .noise, .foreignText: false
    }
  }

  /// In place, as other programs see it at once.
  func apply(to path: String, using random: inout SeededRandom) {
    let descriptor = open(path, O_RDWR)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    switch self {
    case .flip(let at, let bit): flip(descriptor, at, bit)
    case .flips(let at, let count):
      for _ in 0..<count {
        flip(descriptor, at + Int.random(in: 0..<4096, using: &random), Int.random(in: 0..<8, using: &random))
      }
    case .zeroes(let at, let count): write(descriptor, [UInt8](repeating: 0, count: count), at)
    case .noise(let at, let count):
      write(descriptor, (0..<count).map { _ in random.next() }.map(UInt8.init(truncatingIfNeeded:)), at)
    case .cut(let size): ftruncate(descriptor, off_t(size))
    case .foreignText:
      ftruncate(descriptor, 0)
      write(descriptor, Array(repeating: Array("not a database at all\n".utf8), count: 2000).flatMap { $0 }, 0)
    case .empty: ftruncate(descriptor, 0)
    }
  }

  private func flip(_ descriptor: Int32, _ at: Int, _ bit: Int) {
    var byte: UInt8 = 0
    guard pread(descriptor, &byte, 1, off_t(at)) == 1 else { return }
    byte ^= 1 << bit
    pwrite(descriptor, &byte, 1, off_t(at))
  }

  private func write(_ descriptor: Int32, _ bytes: [UInt8], _ at: Int) {
    pwrite(descriptor, bytes, bytes.count, off_t(at))
  }
}
