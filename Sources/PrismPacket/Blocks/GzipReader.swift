import CZlib
import PrismProtocol

/// Unpacks gzip members piece by piece, so that what they unpack to needs no memory as a whole.
package final class GzipReader {
  /// On the heap: zlib keeps its address.
  private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
  private let input: UnsafeMutableBufferPointer<UInt8>
  /// The last member has ended, or the input is damaged from here on.
  package private(set) var isAtEnd = false
  /// The input is not gzip, or ends within a member.
  package private(set) var isDamaged = false

  /// - Throws: `internal`: no memory.
  package init(_ bytes: ArraySlice<UInt8>) throws(PacketError) {
    input = .allocate(capacity: bytes.count)
    _ = input.initialize(from: bytes)
    stream.initialize(to: z_stream())
    guard prism_inflate_gzip_init(stream) == Z_OK else {
      isAtEnd = true
      throw .internal
    }
    (stream.pointee.next_in, stream.pointee.avail_in) = (input.baseAddress, UInt32(input.count))
  }

  deinit {
    inflateEnd(stream)
    stream.deallocate()
    input.deallocate()
  }

  /// Appends at most `count` bytes; fewer at the end.
  package func read(_ count: Int, into output: inout [UInt8]) {
    guard !isAtEnd, count > 0 else { return }
    let start = output.count
    output.append(contentsOf: repeatElement(0, count: count))
    let produced = output.withUnsafeMutableBufferPointer { bytes in
      stream.pointee.next_out = bytes.baseAddress! + start
      stream.pointee.avail_out = UInt32(count)
      while stream.pointee.avail_out > 0 {
        let code = inflate(stream, Z_NO_FLUSH)
        if code == Z_STREAM_END, stream.pointee.avail_in > 0, inflateReset(stream) == Z_OK { continue }
        guard code != Z_OK else { continue }
        (isAtEnd, isDamaged) = (true, code != Z_STREAM_END)
        break
      }
      return count - Int(stream.pointee.avail_out)
    }
    output.removeLast(count - produced)
  }
}
