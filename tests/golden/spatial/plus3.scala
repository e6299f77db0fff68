import spatial.dsl._

@spatial class A_kernel(bp: scala.Int = 8, ip: scala.Int = 16, sp: scala.Int = 1) extends SpatialTest {
  type T = Int
  def main(args: Array[String]): Unit = {
    val i_size = ArgIn[T]
    setArg(i_size, args(0).to[T])
    val j_size = ArgIn[T]
    setArg(j_size, args(1).to[T])
    val C_entries1 = ArgIn[T]
    setArg(C_entries1, args(2).to[T])
    val D_entries1 = ArgIn[T]
    setArg(D_entries1, args(3).to[T])
    val j_bits = ArgIn[T]
    setArg(j_bits, args(4).to[T])
    val B_entries1 = ArgIn[T]
    setArg(B_entries1, args(5).to[T])
    val C_pos1_host = DRAM[T](i_size.value + 1)
    setMem(C_pos1_host, loadCSV1D[T]("C_pos1_host.csv"))
    val D_pos1_host = DRAM[T](i_size.value + 1)
    setMem(D_pos1_host, loadCSV1D[T]("D_pos1_host.csv"))
    val C_crd1_host = DRAM[T](C_entries1.value)
    setMem(C_crd1_host, loadCSV1D[T]("C_crd1_host.csv"))
    val D_crd1_host = DRAM[T](D_entries1.value)
    setMem(D_crd1_host, loadCSV1D[T]("D_crd1_host.csv"))
    val C_vals_host = DRAM[T](C_entries1.value)
    setMem(C_vals_host, loadCSV1D[T]("C_vals_host.csv"))
    val D_vals_host = DRAM[T](D_entries1.value)
    setMem(D_vals_host, loadCSV1D[T]("D_vals_host.csv"))
    val A_pos1_host = DRAM[T](i_size.value + 1)
    setMem(A_pos1_host, Array.fill[T](i_size.value + 1)(0.to[T]))
    val B_pos1_host = DRAM[T](i_size.value + 1)
    setMem(B_pos1_host, loadCSV1D[T]("B_pos1_host.csv"))
    val B_crd1_host = DRAM[T](B_entries1.value)
    setMem(B_crd1_host, loadCSV1D[T]("B_crd1_host.csv"))
    val A_crd1_host = DRAM[T](B_entries1.value + (C_entries1.value + D_entries1.value))
    setMem(A_crd1_host, Array.fill[T](B_entries1.value + (C_entries1.value + D_entries1.value))(0.to[T]))
    val B_vals_host = DRAM[T](B_entries1.value)
    setMem(B_vals_host, loadCSV1D[T]("B_vals_host.csv"))
    val A_vals_host = DRAM[T](B_entries1.value + (C_entries1.value + D_entries1.value))
    setMem(A_vals_host, Array.fill[T](B_entries1.value + (C_entries1.value + D_entries1.value))(0.to[T]))
    Accel {
      val C_vals_sparse = SparseDRAM[T](bp)(C_entries1.value, true)
      C_vals_sparse.alias = C_vals_host
      val D_vals_sparse = SparseDRAM[T](bp)(D_entries1.value, true)
      D_vals_sparse.alias = D_vals_host
      val A_pos1_sparse = SparseDRAM[T](bp)(i_size.value + 1, true)
      A_pos1_sparse.alias = A_pos1_host
      val A_crd1_sparse = SparseDRAM[T](bp)(B_entries1.value + (C_entries1.value + D_entries1.value), true)
      A_crd1_sparse.alias = A_crd1_host
      val B_vals_sparse = SparseDRAM[T](bp)(B_entries1.value, true)
      B_vals_sparse.alias = B_vals_host
      val A_vals_sparse = SparseDRAM[T](bp)(B_entries1.value + (C_entries1.value + D_entries1.value), true)
      A_vals_sparse.alias = A_vals_host
      val ws_pos1 = SRAM[T](65536)
      val ws_crd1 = SparseSRAM[T](65536, true)
      val ws = SparseSRAM[T](65536, true)
      val ws_end1 = SparseParSRAM[T](bp)(16, true)
      ws_pos1(0) = 0
      val C_pos1 = SRAM[T](65536)
      C_pos1 load C_pos1_host(0::(i_size.value + 1) par ip)
      val D_pos1 = SRAM[T](65536)
      D_pos1 load D_pos1_host(0::(i_size.value + 1) par ip)
      Foreach(i_size.value by 1 par bp) { i =>
        val C_1_begin = C_pos1(i)
        val C_1_end = C_pos1(i + 1)
        val C_1_length = C_1_end - C_1_begin
        val D_1_begin = D_pos1(i)
        val D_1_end = D_pos1(i + 1)
        val D_1_length = D_1_end - D_1_begin
        val C_crd1 = FIFO[T](16).retiming
        C_crd1_host stream_load_vec(C_1_begin, C_1_length, C_crd1)
        val C_bits = FIFO[U32](4096)
        gen_bitvector(0, j_bits.value, C_1_length, C_crd1, C_bits)
        val D_crd1 = FIFO[T](16).retiming
        D_crd1_host stream_load_vec(D_1_begin, D_1_length, D_crd1)
        val D_bits = FIFO[U32](4096)
        gen_bitvector(0, j_bits.value, D_1_length, D_crd1, D_bits)
        val C_bits_counted = FIFO[U32](4096)
        val C_bits_filled = FIFO[U32](4096)
        val D_bits_counted = FIFO[U32](4096)
        val D_bits_filled = FIFO[U32](4096)
        Foreach((j_bits.value / 32) by 1 par ip) { at_word =>
          val word = C_bits.deq
          C_bits_counted.enq(word)
          C_bits_filled.enq(word)
          val word_2 = D_bits.deq
          D_bits_counted.enq(word_2)
          D_bits_filled.enq(word_2)
        }
        val count = Reg[T](0.to[T])
        Reduce(count)(ScanRed(ip, j_bits.value, "or", C_bits_counted.deq, D_bits_counted.deq)) { case List(j_counted, j_left_counted, j_out_counted, j_right_counted) =>
          1
        } { _ + _ }
        val ws_end = ws_end1.RMW(0, count.value, "add", "ordered", Seq())
        val begin = ws_end - count.value
        ws_pos1(i + 1) = ws_end
        Foreach(Scan(ip, j_bits.value, "or", C_bits_filled.deq, D_bits_filled.deq)) { case List(j, j_left, j_out, j_right) =>
          val C_at = mux(j_left >= 0, C_1_begin + j_left, -1)
          val D_at = mux(j_right >= 0, D_1_begin + j_right, -1)
          val place = begin + j_out
          ws_crd1.barrierWrite(place, j, Seq())
          val C_value = C_vals_sparse.barrierRead(C_at, Seq())
          val D_value = D_vals_sparse.barrierRead(D_at, Seq())
          ws.barrierWrite(place, C_value + D_value, Seq())
        }
      }
      val A_end1 = SparseParSRAM[T](bp)(16, true)
      A_pos1_sparse.barrierWrite(0, 0, Seq())
      val B_pos1 = SRAM[T](65536)
      B_pos1 load B_pos1_host(0::(i_size.value + 1) par ip)
      Foreach(i_size.value by 1 par bp) { i_2 =>
        val B_1_begin = B_pos1(i_2)
        val B_1_end = B_pos1(i_2 + 1)
        val B_1_length = B_1_end - B_1_begin
        val ws_1_begin = ws_pos1(i_2)
        val ws_1_end = ws_pos1(i_2 + 1)
        val ws_1_length = ws_1_end - ws_1_begin
        val B_crd1 = FIFO[T](16).retiming
        B_crd1_host stream_load_vec(B_1_begin, B_1_length, B_crd1)
        val B_bits = FIFO[U32](4096)
        gen_bitvector(0, j_bits.value, B_1_length, B_crd1, B_bits)
        val ws_crd = FIFO[T](16).retiming
        Foreach(ws_1_length by 1 par ip) { entry =>
          val coordinate = ws_crd1.barrierRead(ws_1_begin + entry, Seq())
          ws_crd.enq(coordinate)
        }
        val ws_bits = FIFO[U32](4096)
        gen_bitvector(0, j_bits.value, ws_1_length, ws_crd, ws_bits)
        val B_bits_counted = FIFO[U32](4096)
        val B_bits_filled = FIFO[U32](4096)
        val ws_bits_counted = FIFO[U32](4096)
        val ws_bits_filled = FIFO[U32](4096)
        Foreach((j_bits.value / 32) by 1 par ip) { at_word_2 =>
          val word_3 = B_bits.deq
          B_bits_counted.enq(word_3)
          B_bits_filled.enq(word_3)
          val word_4 = ws_bits.deq
          ws_bits_counted.enq(word_4)
          ws_bits_filled.enq(word_4)
        }
        val count_2 = Reg[T](0.to[T])
        Reduce(count_2)(ScanRed(ip, j_bits.value, "or", B_bits_counted.deq, ws_bits_counted.deq)) { case List(j_2_counted, j_left_2_counted, j_out_2_counted, j_right_2_counted) =>
          1
        } { _ + _ }
        val A_end = A_end1.RMW(0, count_2.value, "add", "ordered", Seq())
        val begin_2 = A_end - count_2.value
        A_pos1_sparse.barrierWrite(i_2 + 1, A_end, Seq())
        Foreach(Scan(ip, j_bits.value, "or", B_bits_filled.deq, ws_bits_filled.deq)) { case List(j_2, j_left_2, j_out_2, j_right_2) =>
          val B_at = mux(j_left_2 >= 0, B_1_begin + j_left_2, -1)
          val ws_at = mux(j_right_2 >= 0, ws_1_begin + j_right_2, -1)
          val place_2 = begin_2 + j_out_2
          A_crd1_sparse.barrierWrite(place_2, j_2, Seq())
          val B_value = B_vals_sparse.barrierRead(B_at, Seq())
          val ws_value = ws.barrierRead(ws_at, Seq())
          A_vals_sparse.barrierWrite(place_2, B_value + ws_value, Seq())
        }
      }
    }
    writeCSV1D(getMem(A_pos1_host), "A_pos1_host.csv")
    writeCSV1D(getMem(A_crd1_host), "A_crd1_host.csv")
    writeCSV1D(getMem(A_vals_host), "A_vals_host.csv")
  }
}
